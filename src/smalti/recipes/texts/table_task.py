"""What all tasks on texts share: a table that may learn its codes, and codes that are watched."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn, optim

from smalti.embeddings import build_compressor
from smalti.embeddings.differentiable_table import DifferentiableEmbedding, learning_loss
from smalti.errors import ConfigError
from smalti.recipes.run_directories import named
from smalti.recipes.texts.config import TableTaskConfig
from smalti.recipes.texts.outcome import Learned, Outcome, exported, input_table, table_bytes
from smalti.training import Counted, train

Batch = TypeVar("Batch")
# Codes of larger codebooks need more than a byte.
BYTE = 256


class TableTask(ABC, Generic[Batch]):
    """Trains a model whose part ``embedding`` is the input table.

    Args:
        model: What learns.
        config: Learning rate and batch size.
        words: What the rows of the table stand for.
    """

    name: str
    metric: str

    def __init__(self, model: nn.Module, config: TableTaskConfig, words: list[str]) -> None:
        self.model, self.training, self.words = model, config.training, words
        self.steps = 0
        self.codes: list[tuple[int, Tensor]] = []

    @abstractmethod
    def batches(self, epoch: int, generator: torch.Generator) -> Counted[Batch]:
        """The batches of one epoch."""

    @abstractmethod
    def loss(self, batch: Batch) -> Tensor:
        """The task's loss, a mean over the rows of a batch."""

    @abstractmethod
    def scores(self, split: str) -> dict[str, float]:
        """Figures of ``"valid"`` or ``"test"``, ``metric`` among them."""

    def step(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """The task's loss, and that of a table that learns its codes."""
        loss, own = self.loss(batch), learning_loss(self.model)
        return loss + own.to(loss.device), {"task_loss": loss.detach()}

    def optimizer(self) -> optim.Optimizer:
        """Adam, whose steps are counted."""
        made = optim.Adam(self.model.parameters(), lr=self.training.learning_rate)
        made.register_step_post_hook(self._count)
        return made

    def evaluate(self) -> dict[str, float]:
        """Figures of held-out text, and the share of codes that changed since the last time."""
        made = self.scores("valid")
        if isinstance(self.table, DifferentiableEmbedding):
            small = torch.uint8 if self.table.codebook_size <= BYTE else torch.int32
            codes = self.table.codes().to("cpu", small)
            if self.codes:
                made["codes_changed"] = float((codes != self.codes[-1][1]).double().mean())
            self.codes.append((self.steps, codes))
        return made

    def picture(self) -> None:
        """There is nothing to look at."""

    def state_dict(self) -> dict[str, Any]:
        """The codes that were seen, and when."""
        return {"steps": self.steps, "codes": self.codes}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with the codes that ``state_dict`` gave."""
        self.steps, self.codes = state["steps"], list(state["codes"])

    @property
    def table(self) -> nn.Module:
        """The input table."""
        table: nn.Module = self.model.get_submodule("embedding")
        return table

    def _count(self, *_: Any) -> None:
        self.steps += 1


def start_table(config: TableTaskConfig, rows: int) -> nn.Module:
    """The untrained input table that a config asks for."""
    with named("embedding"):
        coded = None if config.embedding is None else build_compressor(config.embedding)
        return input_table(coded, rows, config.dim)


def learn(task: TableTask[Any], config: TableTaskConfig, run: Path | None, resume: bool) -> Learned:
    """Train a task, put the table in its place that would be shipped, and measure.

    Args:
        task: What is trained.
        config: What it was made from.
        run: A directory for checkpoints and the journal; None writes nothing.
        resume: Go on from what is there.
    """
    outcome = train(task, config.training, run, resume, config=config.model_dump(mode="json"))
    if not outcome.finished:
        raise ConfigError("stopped before the end; resume to go on")
    task.model.cpu()
    table, same = exported(task.table)
    task.model.register_module("embedding", table)
    task.model.eval()
    stored, rows = table_bytes(table), len(task.words)
    made = Outcome(
        task=task.name,
        metric=task.metric,
        valid=task.scores("valid"),
        test=task.scores("test"),
        rows=rows,
        dim=config.dim,
        table_bytes=stored,
        compression_ratio=4 * rows * config.dim / stored,
        exported_equals_trained=same,
        embedding=config.embedding,
        steps=outcome.step,
        seed=config.training.seed,
        seconds=outcome.seconds,
    )
    return Learned(made, task.model, task.words, task.codes)
