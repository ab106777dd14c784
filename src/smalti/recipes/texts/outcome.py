"""What a task on texts reports: scores, what the table cost, and what became of its codes."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from smalti.embeddings.base import CompressedEmbedding, Compressor
from smalti.embeddings.differentiable_table import DifferentiableEmbedding


@dataclass(frozen=True)
class Outcome:
    """A trained model's score and the size of its input table.

    Attributes:
        task: What was learned.
        metric: The figure that counts; ``"perplexity"`` (lower is better) or ``"accuracy"``.
        valid: Figures of the validation set, with the exported table.
        test: Figures of the test set, with the exported table.
        rows: Rows of the input table.
        dim: Width of the input table.
        table_bytes: Bytes of the input table as it would be saved.
        compression_ratio: Bytes of the float32 table over ``table_bytes``.
        exported_equals_trained: Whether the exported table gives every row bit for bit as
            the trained one does in evaluation; None where nothing is exported.
        embedding: The spec of the compressor, or None for a full table.
        steps: How many steps were trained.
        seed: Of the run.
        seconds: Of all steps.
    """

    task: str
    metric: str
    valid: dict[str, float]
    test: dict[str, float]
    rows: int
    dim: int
    table_bytes: int
    compression_ratio: float
    exported_equals_trained: bool | None
    embedding: dict[str, Any] | None
    steps: int
    seed: int
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Learned:
    """A trained model, and what there is to say of it.

    Args:
        outcome: Its scores and the size of its input table.
        model: The model; its part ``embedding`` is the table as it would be shipped.
        words: What the rows of the table stand for.
        codes: The codes ``(rows, num_codebooks)`` at each evaluation, after so many steps.
    """

    outcome: Outcome
    model: nn.Module
    words: list[str]
    codes: list[tuple[int, Tensor]]

    def table(self) -> Tensor:
        """The input table ``(rows, dim)``."""
        embedding = self.model.get_submodule("embedding")
        with torch.no_grad():
            found: Tensor = embedding(torch.arange(self.outcome.rows))
        return found


def input_table(embedding: Compressor | None, rows: int, dim: int) -> nn.Module:
    """The untrained input table: a full one, or one that learns its codes."""
    if embedding is not None:
        return embedding.start(rows, dim)
    full = nn.Embedding(rows, dim)
    nn.init.normal_(full.weight, std=1 / math.sqrt(dim))
    return full


@torch.no_grad()
def exported(table: nn.Module) -> tuple[nn.Module, bool | None]:
    """The table as it would be shipped, and whether it equals the trained one."""
    if not isinstance(table, DifferentiableEmbedding):
        return table, None
    table.eval()
    made = table.export()
    ids = torch.randperm(table.rows, generator=torch.Generator().manual_seed(0))
    same = all(torch.equal(made(some), table(some)) for some in (ids, ids[:1], *ids.split(1000)))
    return made, same


def table_bytes(table: nn.Module) -> int:
    """Bytes of a table's saved tensors."""
    if isinstance(table, CompressedEmbedding):
        return table.size().total
    tensors: list[Tensor] = list(table.state_dict().values())
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
