"""Rows kept as they are: what a partial table holds of its commonest rows.

Reference:
    Tamura, Yoshinaga, Neishi, "Further Compressing Distilled Language Models via
    Frequency-aware Partial Sparse Coding of Embeddings", section 2.1 (source embeddings).

Differs from the paper:
    Rows may be kept as float16, at half the bytes; such rows do not learn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from smalti.embeddings.base import (
    BLOCK_ROWS,
    CompressedEmbedding,
    Compressor,
    compressors,
    tables,
)
from smalti.embeddings.border import DTYPES
from smalti.embeddings.rounding import storable
from smalti.errors import require
from smalti.quantizers.settings import word


@tables.register("full")
class FullTable(CompressedEmbedding):
    """Every row by itself.

    Args:
        rows: How many vectors.
        dim: Width of a vector.
        precision: ``"float32"`` rows are a parameter and learn; ``"float16"`` rows are a
            buffer, so that they take half the memory too, and don't.
    """

    holds: ClassVar[Mapping[str, str]] = {"vectors": "kept"}
    vectors: Tensor

    def __init__(self, rows: int, dim: int, precision: str = "float32") -> None:
        super().__init__(rows, dim)
        self.precision = word("precision", precision, tuple(DTYPES))
        dtype = DTYPES[self.precision]
        if dtype == torch.float32:
            self.store("vectors", torch.zeros(rows, dim))
        else:
            self.register_buffer("vectors", torch.zeros(rows, dim, dtype=dtype))
            self.stored["vectors"] = dtype

    def lookup(self, ids: Tensor) -> Tensor:
        """The rows themselves."""
        return functional.embedding(ids, self.vectors).to(self.output_dtype)

    def score(self, hidden: Tensor) -> Tensor:
        """The rows need no decoding: they are read where they lie."""
        blocks = self.vectors.split(BLOCK_ROWS)
        return torch.cat([hidden @ block.to(hidden.dtype).T for block in blocks], dim=-1)


@compressors.register("full")
class Full(Compressor):
    """Keeps every row.

    Args:
        precision: ``"float32"`` or ``"float16"``.

    Example:
        >>> table = Full("float16").fit(torch.tensor([[0.5, -1.0], [2.0, 0.25]]))
        >>> table(torch.tensor([1]))
        tensor([[2.0000, 0.2500]])
        >>> table.size().kept
        8
    """

    example: ClassVar[Mapping[str, Any]] = {"precision": "float32"}

    def __init__(self, precision: str = "float32") -> None:
        self.precision = word("precision", precision, tuple(DTYPES))

    def outline(self, rows: int, dim: int) -> FullTable:
        """The rows themselves."""
        return FullTable(rows, dim, self.precision)

    def _fit(
        self,
        table: Tensor,
        counts: Tensor | None,
        special: list[int],
        generator: torch.Generator,
    ) -> FullTable:
        del counts, special, generator
        rows, dim = table.shape
        made = self.outline(rows, dim)
        made.vectors.copy_(storable(table, DTYPES[self.precision]))
        return made

    def start(self, rows: int, dim: int) -> FullTable:
        """An untrained table that starts as ``nn.Embedding`` does."""
        require(
            self.precision == "float32",
            f"{self.precision} rows do not learn: start with precision='float32'",
        )
        made = self.outline(rows, dim)
        nn.init.normal_(made.vectors)
        return made
