"""What a recipe reports: a score, and what the table cost."""

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
        metric: What the scores are; ``"perplexity"`` (lower is better) or ``"accuracy"``.
        valid: Score on the validation set.
        test: Score on the test set, with the exported table.
        rows: Rows of the input table.
        dim: Width of the input table.
        table_bytes: Bytes of the input table as it would be saved.
        compression_ratio: Bytes of the float32 table over ``table_bytes``.
        exported_equals_trained: Whether the exported table gives every row bit for bit as
            the trained one does in evaluation; None where nothing is exported.
        embedding: The spec of the compressor, or None for a full table.
        epochs: How many epochs were trained.
        seed: Of the run.
        seconds: Of the run, training and evaluation.
    """

    task: str
    metric: str
    valid: float
    test: float
    rows: int
    dim: int
    table_bytes: int
    compression_ratio: float
    exported_equals_trained: bool | None
    embedding: dict[str, Any] | None
    epochs: int
    seed: int
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


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
