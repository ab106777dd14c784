"""Fine-tunes an encoder to a labelled set, with a new head of classes or of one score.

Reference:
    Devlin, Chang, Lee, Toutanova, "BERT: Pre-training of Deep Bidirectional Transformers for
    Language Understanding", NAACL 2019, section 4.1.

Differs from the paper:
    Texts of like length are batched together, so that little is padded. Scores are learned
    less their mean and in units of their spread: a correlation does not notice, and a new head
    need not find their scale first.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn, optim
from torch.nn import functional

from smalti.artifacts import draft_of
from smalti.data.labelled import Labelled
from smalti.errors import ConfigError
from smalti.hub.batching import encoded, limit_of
from smalti.hub.library import Model, quiet, transformers_library
from smalti.hub.opening import Opened, open_model
from smalti.hub.outputs import call
from smalti.training import Counted, TrainingSettings, train

Batch = dict[str, Any]
# The parts of a directory that is trained into.
MODEL, TRAINING = "model", "training"
# How far lengths are blurred before texts are sorted by them: batches differ between epochs.
BLUR = 0.2


def fine_tune(
    base: str | Path,
    examples: Labelled,
    settings: TrainingSettings,
    place: Path,
    *,
    longest: int = 128,
) -> Opened:
    """A fine-tuned model: trained now, trained on after a stop, or as it was trained before.

    Args:
        base: The encoder's directory or name.
        examples: Texts or pairs, with classes or scores.
        settings: How to train; its seed also makes the head.
        place: A directory of this model's own. Its part ``model`` is the result.
        longest: Longer texts are cut to so many tokens.
    """
    if not (place / MODEL).exists():
        opened = _with_new_head(base, len(examples.classes) or 1, settings.seed)
        task = FineTuning(opened, examples, settings, longest)
        run = place / TRAINING
        config = {"base": str(base), "longest": longest, "examples": len(examples)}
        outcome = train(task, settings, run, resume=run.exists(), config=config)
        if not outcome.finished:
            raise ConfigError("stopped before the end of fine-tuning; the same command goes on")
        with draft_of(place / MODEL, lambda _: False) as draft, quiet():
            opened.model.save_pretrained(draft)
            opened.tokenizer.save_pretrained(draft)
        shutil.rmtree(run)
    return open_model(place / MODEL)


class FineTuning:
    """The task of a head, and of all below it.

    Args:
        opened: The model with its tokenizer.
        examples: What to learn.
        settings: Batch size and learning rate.
        longest: Longer texts are cut to so many tokens.
    """

    def __init__(
        self, opened: Opened, examples: Labelled, settings: TrainingSettings, longest: int
    ) -> None:
        limit = limit_of(opened.model, opened.tokenizer)
        self.model: nn.Module = opened.model
        self.settings = settings
        self.texts = encoded(
            opened.tokenizer,
            examples.first,
            examples.second,
            limit=longest if limit is None else min(limit, longest),
        )
        self.labels = examples.labels if examples.classes else _standard(examples.labels)

    def batches(self, epoch: int, generator: torch.Generator) -> Counted[Batch]:
        """All examples, those of like lengths together, in random order."""
        del epoch
        blur = 1 + BLUR * torch.rand(len(self.labels), generator=generator)
        parts = torch.argsort(self.texts.lengths * blur).split(self.settings.batch_size)
        order = torch.randperm(len(parts), generator=generator).tolist()
        return Counted((self._batch(parts[place]) for place in order), len(parts))

    def step(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Cross-entropy of classes, or the squared error of scores."""
        inputs, labels = batch["inputs"], batch["labels"]
        scores = call(self.model, inputs, labels.device).logits.float()
        if labels.is_floating_point():
            return functional.mse_loss(scores[:, 0], labels), {}
        return functional.cross_entropy(scores, labels), {}

    def optimizer(self) -> optim.Optimizer:
        """Adam, without weight decay."""
        return optim.Adam(self.model.parameters(), lr=self.settings.learning_rate, fused=True)

    def evaluate(self) -> dict[str, float]:
        """Nothing: what was learned is measured when it is finished."""
        return {}

    def picture(self) -> None:
        """There is nothing to look at."""

    def _batch(self, places: Tensor) -> Batch:
        return {"inputs": self.texts.batch(places.tolist()), "labels": self.labels[places]}


def _standard(scores: Tensor) -> Tensor:
    return (scores - scores.mean()) / scores.std().clamp(min=1e-6)


def _with_new_head(base: str | Path, outputs: int, seed: int) -> Opened:
    with torch.random.fork_rng(devices=[]), _unsurprised():
        torch.manual_seed(seed)
        opened = open_model(base, kind="classifier", num_labels=outputs, dtype=torch.float32)
    if opened.tokenizer is None:
        raise ConfigError(f"{base} has no tokenizer; put its files into the directory")
    model: Model = opened.model
    if outputs == 1:
        model.config.problem_type = "regression"
    return opened


@contextmanager
def _unsurprised() -> Iterator[None]:
    """Without the warning that the head is new, which is the point here."""
    said = transformers_library().utils.logging
    level = said.get_verbosity()
    said.set_verbosity_error()
    try:
        yield
    finally:
        said.set_verbosity(level)
