"""Every row becomes one vector: the least that can be kept, and a baseline for the rest.

Reference:
    Tamura, Yoshinaga, Neishi, "Further Compressing Distilled Language Models via
    Frequency-aware Partial Sparse Coding of Embeddings", section 3.4 (the unknown token).

Differs from the paper:
    Where a vocabulary has no unknown token, the rows' mean stands for all of them.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from smalti.embeddings.base import CompressedEmbedding, Compressor, compressors, tables
from smalti.embeddings.weighting import row_weights
from smalti.errors import require
from smalti.quantizers.settings import count


@tables.register("unknown")
class UnknownTable(CompressedEmbedding):
    """One vector for all rows.

    Args:
        rows: How many ids the vector stands for.
        dim: Width of the vector.
    """

    holds: ClassVar[Mapping[str, str]] = {"vector": "codebooks"}
    vector: Tensor

    def __init__(self, rows: int, dim: int) -> None:
        super().__init__(rows, dim)
        self.store("vector", torch.zeros(dim))

    def lookup(self, ids: Tensor) -> Tensor:
        """The vector for each id; copies, because models write into what they look up."""
        return self.vector.repeat(ids.shape[0], 1)

    def score(self, hidden: Tensor) -> Tensor:
        """The vector is scored once."""
        return (hidden @ self.vector.to(hidden.dtype)).unsqueeze(-1).repeat(1, self.rows)


@compressors.register("unknown")
class Unknown(Compressor):
    """Puts one vector in the place of every row.

    Args:
        row: Whose vector, such as the unknown token's; it counts in the whole table, also
            where only a rest of it is coded. None takes the mean, weighted by counts.

    Example:
        >>> table = Unknown(row=1).fit(torch.tensor([[0.5, -1.0], [2.0, 0.25]]))
        >>> table(torch.tensor([0]))
        tensor([[2.0000, 0.2500]], grad_fn=<ViewBackward0>)
    """

    example: ClassVar[Mapping[str, Any]] = {"row": 1}

    def __init__(self, row: int | None = None) -> None:
        self.row = None if row is None else count("row", row, least=0)
        self._vector: Tensor | None = None

    def prepared(self, table: Tensor) -> Unknown:
        """Remember the vector of ``row``, which may be among the rows that are kept."""
        made = copy.copy(self)
        if self.row is not None and self._vector is None:
            require(
                self.row < len(table),
                f"expected row in 0..{len(table) - 1}, the rows of the table, got {self.row}",
            )
            made._vector = table[self.row].clone()
        return made

    def outline(self, rows: int, dim: int) -> UnknownTable:
        """One vector."""
        return UnknownTable(rows, dim)

    def _fit(
        self,
        table: Tensor,
        counts: Tensor | None,
        special: list[int],
        generator: torch.Generator,
    ) -> UnknownTable:
        del special, generator
        vector = self._vector
        if vector is None and self.row is not None:
            vector = self.prepared(table)._vector
        if vector is None:
            weights = row_weights(counts, len(table), power=1.0).double()
            vector = (weights @ table.double()) / weights.sum()
        made = self.outline(*table.shape)
        made.vector.copy_(vector)
        return made
