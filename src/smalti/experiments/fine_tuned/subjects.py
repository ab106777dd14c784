"""A model fine-tuned to a task, ready to be measured with one table after the other.

One fine-tuning serves all arms of all tables: it is kept in a folder named by its settings.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from filelock import FileLock
from torch import Tensor

from smalti.artifacts import draft_of, write_file
from smalti.data import GlueSplit, Labelled, count_tokens, glue_task, read_glue
from smalti.experiments.fine_tuned.settings import FineTunedSettings, GlueData, SmallModel
from smalti.hub import find_group, open_model
from smalti.hub.batching import Batches, batches
from smalti.hub.choosing.candidates import Table
from smalti.hub.choosing.judging import in_place
from smalti.hub.classification import head_figures
from smalti.hub.fine_tuning import fine_tune
from smalti.hub.library import quiet
from smalti.hub.opening import Opened
from smalti.hub.small_models import small_encoder, small_tokenizer
from smalti.training.processes import computing_in

# Texts of a batch when a model is measured; its activations stay in a processor's cache.
MEASURED_BATCH = 32
BASE = "base"
Part = Literal["valid", "test"]


@dataclass(frozen=True, eq=False)
class Subject:
    """A fine-tuned model with its data.

    Args:
        task: Its name.
        opened: The model.
        split: Its examples.
        table: Its table, and how often rows occur in what it learned from.
        pretrained: ``(rows, dim)`` the table before fine-tuning.
        made: The tokenized examples that it is measured on.
        seed: Of everything random.
        precision: What it computes in when it is measured.
        original: The test figures with its own table.
    """

    task: str
    opened: Opened
    split: GlueSplit
    table: Table
    pretrained: Tensor
    made: dict[Part, Batches]
    seed: int
    precision: str
    original: dict[str, float]

    @property
    def generator(self) -> torch.Generator:
        """A new source of random numbers, always the same."""
        return torch.Generator().manual_seed(self.seed)

    def figures(self, dense: Tensor, part: Part = "test") -> dict[str, float]:
        """What the model scores with another table; where there is no score, 0."""
        with in_place(self.opened, dense):
            examples = getattr(self.split, part)
            return _figures(self.opened, self.made[part], examples, self.precision)

    def score(self, figures: dict[str, float]) -> float:
        """The figure that counts for the task."""
        return figures[glue_task(self.task).score]


def prepared(
    task: str, settings: FineTunedSettings, seed: int, shared: Path, *, wait: bool = True
) -> Subject:
    """A subject: fine-tuned now, or taken from the folder where it is kept.

    Args:
        task: The task.
        settings: Of the arm; what is done to tables does not matter here.
        seed: Of the fine-tuning.
        shared: The folder of all fine-tuned models.
        wait: Whether to wait where another process is fine-tuning it.

    Raises:
        filelock.Timeout: Another process is at it, and this one does not wait.
    """
    training = settings.training_of(task, seed)
    asked = settings.model_dump(
        mode="json", exclude={"tasks", "change", "epochs_of", "measured_in"}
    )
    asked["training"] = training.model_dump(mode="json")
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]
    place = shared / f"{task}.{seed}.{digest}"
    split = read_split(task, settings)
    shared.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{place}.lock", blocking=wait):
        base = base_model(settings, split, place)
        opened = fine_tune(base, split.train, training, place, longest=settings.longest)
        made: dict[Part, Batches] = {
            "valid": _batches(opened, split.valid, settings.longest),
            "test": _batches(opened, split.test, settings.longest),
        }
        precision = settings.measured_in
        file = place / f"original.{precision}.json"
        if not file.exists():
            write_file(file, json.dumps(_figures(opened, made["test"], split.test, precision)))
    return Subject(
        task,
        opened,
        split,
        _table(opened, split.train),
        find_group(open_model(base, kind="encoder").model).weight.detach().float(),
        made,
        seed,
        precision,
        json.loads(file.read_text()),
    )


def read_split(task: str, data: GlueData) -> GlueSplit:
    """The examples of a task, as many as are asked for."""
    return read_glue(task, data.most, data.test_most, data.train_files.get(task))


def base_model(data: GlueData, split: GlueSplit, place: Path) -> str | Path:
    """What is fine-tuned: a known model, or a small one that is made now and kept."""
    if not isinstance(data.model, SmallModel):
        return data.model
    if not (place / BASE).exists():
        tokenizer = small_tokenizer(texts_of(split.train), data.model.rows)
        rows, dim, layers = data.model.rows, data.model.dim, data.model.layers
        model = small_encoder(rows, dim, layers, longest=data.longest, seed=0)
        with draft_of(place / BASE, lambda _: False) as draft, quiet():
            model.save_pretrained(draft)
            tokenizer.save_pretrained(draft)
    return place / BASE


def texts_of(examples: Labelled) -> Iterator[str]:
    """All texts, those of pairs one after the other."""
    yield from examples.first
    yield from examples.second or ()


def special_rows(tokenizer: Any, rows: int) -> tuple[int, ...]:
    """The rows of special tokens."""
    return tuple(sorted(row for row in set(tokenizer.all_special_ids) if row < rows))


def _batches(opened: Opened, examples: Labelled, longest: int) -> Batches:
    return batches(
        opened.tokenizer,
        examples.first,
        examples.second,
        batch_size=MEASURED_BATCH,
        limit=longest,
    )


def _table(opened: Opened, examples: Labelled) -> Table:
    group, tokenizer = find_group(opened.model), opened.tokenizer
    counts = count_tokens(texts_of(examples), tokenizer, group.rows, progress=False)
    return Table(
        group.weight.detach().float().clone(),
        counts.counts.double(),
        special_rows(tokenizer, group.rows),
        tokenizer.unk_token_id,
    )


def _figures(opened: Opened, made: Batches, examples: Labelled, precision: str) -> dict[str, float]:
    with computing_in(precision, opened.model.device):
        found = head_figures(opened.model, made, examples)
    return {name: value or 0.0 for name, value in found.items()}


@contextmanager
def text_file(examples: Labelled, place: Path) -> Iterator[Path]:
    """The texts as a file, a line each, for as long as it is needed."""
    path = place / "texts.txt"
    write_file(path, "\n".join(" ".join(text.split()) for text in texts_of(examples)) + "\n")
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
