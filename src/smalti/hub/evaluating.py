"""Evaluates a model, by itself and beside its original, on whatever data there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smalti.data.labelled import Labelled
from smalti.data.tokens import fingerprint
from smalti.errors import ConfigError, DataError, require
from smalti.hub.batching import Batches, batches, limit_of
from smalti.hub.classification import class_scores, classification, regression
from smalti.hub.evaluation import Evaluation, Footprint, Task
from smalti.hub.fidelity import class_fidelity, token_fidelity, vector_fidelity
from smalti.hub.footprint import disk_bytes, memory_bytes, table_bytes
from smalti.hub.library import Model
from smalti.hub.loading import checked_directory, read_json
from smalti.hub.opening import Opened, open_model
from smalti.hub.perplexity import perplexity, read_running
from smalti.hub.plugin import METHOD
from smalti.hub.pooling import SentenceSettings, encode_batches, sentence_settings
from smalti.hub.similarity import distinct, similarity
from smalti.hub.speed import speed as measured_speed

# Scores of all tokens are compared at so many positions of so many texts at a time.
FEW_TOKENS, FEW_TEXTS = 128, 4
Figures = dict[str, float | None]


def open_checked(name: str | Path) -> Opened:
    """As ``open_model``, after comparing a compressed model's files with their checksums."""
    place = Path(name).expanduser()
    if (place / "config.json").is_file():
        config = read_json(place / "config.json").get("quantization_config")
        if isinstance(config, dict) and config.get("quant_method") == METHOD:
            checked_directory(place)
    return open_model(name)


def evaluate(
    model: str | Path | Opened,
    against: str | Path | Opened | None = None,
    *,
    texts: Sequence[str] = (),
    labelled: Sequence[Labelled] = (),
    running: str | Path | None = None,
    tokens: int | None = None,
    context: int = 1024,
    stride: int = 512,
    speed: bool = False,
    batch_size: int = 64,
    seed: int = 0,
    progress: bool | None = None,
) -> Evaluation:
    """Measure what applies to a model's kind and to the data given.

    Args:
        model: A name or directory, see ``open_model``, or a model that is open.
        against: Its original, measured on the same data.
        texts: Fidelity to the original is measured on them; no labels are needed.
        labelled: Scored pairs for any transformer; classes, and scores of single texts, for
            classifiers.
        running: A file whose text a causal model is to predict.
        tokens: Only so many tokens of it.
        context: How many tokens the model sees at once.
        stride: How far it goes on between two looks.
        speed: Whether to time a forward pass of both.
        batch_size: Texts of a batch.
        seed: For the choices that are left to chance.
        progress: Whether to draw bars on stderr; None does so on a terminal.
    """
    mine = model if isinstance(model, Opened) else open_checked(model)
    other = against if isinstance(against, Opened) or against is None else open_checked(against)
    if other is None and (texts or speed):
        raise ConfigError("fidelity and speed are measured beside an original: say against which")
    require(
        running is None or mine.kind == "causal",
        f"perplexity is of causal models, got {mine.name}, whose kind is {mine.kind}",
    )
    run = _Run(mine, other, batch_size, seed, progress)
    tasks = [run.labelled_task(examples) for examples in labelled]
    if running is not None:
        tasks.append(run.perplexity_task(running, tokens, context, stride))
    return Evaluation(
        model=footprint(mine),
        against=None if other is None else footprint(other),
        fidelity=run.fidelity(other, texts) if other is not None and texts else {},
        tasks=tasks,
        speed=measured_speed(mine.model, other.model, seed=seed) if other and speed else {},
        notes=run.notes(),
    )


def footprint(opened: Opened) -> Footprint:
    """A model and its bytes."""
    return Footprint(
        name=opened.name,
        kind=opened.kind,
        architecture=type(opened.model).__name__,
        table=table_bytes(opened.model),
        memory=memory_bytes(opened.model),
        disk=None if opened.path is None else disk_bytes(opened.path),
    )


@dataclass
class _Run:
    """One evaluation: the models, the one tokenizer, and how texts are read."""

    mine: Opened
    other: Opened | None
    batch_size: int
    seed: int
    progress: bool | None

    def __post_init__(self) -> None:
        both = [opened for opened in (self.mine, self.other) if opened is not None]
        require(
            len({opened.kind for opened in both}) == 1,
            "expected two models of one kind, got "
            + " and ".join(f"{opened.name}, whose kind is {opened.kind}" for opened in both),
        )
        tokenizers = [opened.tokenizer for opened in both if opened.tokenizer is not None]
        self.tokenizer: Any = tokenizers[0] if tokenizers else None
        require(
            len({fingerprint(tokenizer) for tokenizer in tokenizers}) <= 1,
            f"{' and '.join(opened.name for opened in both)} have different tokenizers: "
            "their outputs can't be compared",
            DataError,
        )
        self.models: list[Model] = [opened.model for opened in both]
        found = [sentence_settings(opened.path or opened.name) for opened in both]
        # A compressed model that was saved without them is pooled as its original is.
        self.settings = next((s for s in found if s != SentenceSettings()), SentenceSettings())

    def batches(
        self, first: Sequence[str], second: Sequence[str] | None = None, most: int | None = None
    ) -> Batches:
        require(
            self.tokenizer is not None,
            f"{self.mine.name} has no tokenizer, and neither has the model it is compared with",
            DataError,
        )
        limits = [limit_of(model, self.tokenizer) for model in self.models]
        limit = min(filter(None, [*limits, self.settings.limit, most]), default=None)
        size = self.batch_size if most is None else FEW_TEXTS
        return batches(self.tokenizer, first, second, batch_size=size, limit=limit)

    def fidelity(self, other: Opened, texts: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any] = {"texts": len(texts)}
        if self.mine.kind in {"causal", "masked"}:
            made = self.batches(texts, most=FEW_TOKENS)
            masked = self.mine.kind == "masked"
            compared = token_fidelity(
                other.model,
                self.mine.model,
                made,
                mask_id=self.tokenizer.mask_token_id if masked else None,
                special=self.tokenizer.all_special_ids,
                seed=self.seed,
                progress=self.progress,
            )
            return found | compared
        made = self.batches(texts)
        vectors = [
            encode_batches(model, made, self.settings.pooling, self.progress)
            for model in (other.model, self.mine.model)
        ]
        found |= {"pooling": self.settings.pooling} | vector_fidelity(*vectors)
        if self.mine.kind == "classifier":
            scores = [class_scores(m, made, self.progress) for m in (other.model, self.mine.model)]
            found |= class_fidelity(*scores)
        return found

    def labelled_task(self, examples: Labelled) -> Task:
        head = self.mine.model.config.num_labels if self.mine.kind == "classifier" else 0
        if examples.classes:
            require(
                head > 1,
                f"classes, as in {examples.source}, need a classifier, got {self.mine.name}, "
                f"whose kind is {self.mine.kind}",
            )
            made = self.batches(examples.first, examples.second)
            return self._task(
                "classification",
                examples,
                lambda model: {**classification(model, made, examples, progress=self.progress)},
            )
        if head == 1:
            made = self.batches(examples.first, examples.second)
            return self._task(
                "regression",
                examples,
                lambda model: regression(model, made, examples, progress=self.progress),
            )
        made = self.batches(distinct(examples)[0])
        pooling = self.settings.pooling
        return self._task(
            "similarity",
            examples,
            lambda model: similarity(
                model, made, examples, pooling=pooling, progress=self.progress
            ),
            pooling=pooling,
        )

    def _task(
        self,
        task: str,
        examples: Labelled,
        measure: Callable[[Model], Figures],
        **settings: Any,
    ) -> Task:
        figures, *others = [measure(model) for model in self.models]
        against = others[0] if others else None
        return Task(task, examples.source, len(examples), figures, against, settings)

    def perplexity_task(
        self, path: str | Path, tokens: int | None, context: int, stride: int
    ) -> Task:
        require(self.tokenizer is not None, f"{self.mine.name} has no tokenizer", DataError)
        text = read_running(path, self.tokenizer, tokens)
        found = [
            perplexity(model, text, context=context, stride=stride, progress=self.progress)
            for model in self.models
        ]
        figures: list[Figures] = [{"perplexity": one.value} for one in found]
        return Task(
            task="perplexity",
            source=text.source,
            examples=found[0].tokens,
            figures=figures[0],
            against=figures[1] if len(figures) > 1 else None,
            settings={"context": context, "stride": stride},
        )

    def notes(self) -> list[str]:
        left_out = ", ".join(self.settings.left_out)
        return [f"sentence vectors are taken before: {left_out}"] if left_out else []
