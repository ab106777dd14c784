"""The tables of word vectors: one for all uses, or one a use; full, or any other table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol, cast, runtime_checkable

from torch import Tensor, nn

from smalti.errors import ConfigError, require
from smalti.layers.packed_linear import PackedLinear
from smalti.layers.remade import Remade
from smalti.layers.smoothed_loss import smoothed_loss, smoothed_loss_of_products

USES = ("source", "target", "output")
SHARED = "shared"


@runtime_checkable
class TokenTable(Protocol):
    """A module with a vector for each token."""

    rows: int
    dim: int

    def forward(self, ids: Tensor) -> Tensor:
        """Vectors ``(..., dim)`` of ids ``(...)``."""

    def logits(self, hidden: Tensor) -> Tensor:
        """Products ``(..., rows)`` of vectors ``(..., dim)`` with all rows."""

    def dense(self) -> Tensor:
        """All vectors, ``(rows, dim)``."""


class FullTable(nn.Embedding):
    """A vector of its own for each token.

    Args:
        rows: How many tokens.
        dim: Width of a vector.
    """

    def __init__(self, rows: int, dim: int) -> None:
        super().__init__(rows, dim)
        self.rows, self.dim = rows, dim
        # A vector is scaled up by the root of its width where it is read, to be of size 1 in
        # each coordinate; products with such vectors then are of size 1 too.
        nn.init.normal_(self.weight, std=1 / math.sqrt(dim))

    def logits(self, hidden: Tensor) -> Tensor:
        """Products ``(..., rows)`` of vectors ``(..., dim)`` with all rows."""
        return nn.functional.linear(hidden, self.weight)

    def dense(self) -> Tensor:
        """All vectors, ``(rows, dim)``."""
        return self.weight


class WordTables(nn.Module):
    """The tables of a translation model, by use: ``"source"``, ``"target"``, ``"output"``.

    Args:
        vocabulary: How many tokens.
        dim: Width of the vectors.
        tied: Whether one table serves all uses.
        given: Tables to use in the place of full ones: ``"shared"`` if tied, otherwise by use.
    """

    def __init__(
        self, vocabulary: int, dim: int, tied: bool, given: Mapping[str, nn.Module] | None
    ) -> None:
        super().__init__()
        given = given or {}
        names = (SHARED,) if tied else USES
        unknown = sorted(set(given) - set(names))
        require(
            not unknown,
            f"there is no table {', '.join(unknown)}; {'tied' if tied else 'untied'} tables are: "
            f"{', '.join(names)}",
        )
        self.tied, self.scale = tied, math.sqrt(dim)
        for name in names:
            table = given.get(name) or FullTable(vocabulary, dim)
            if not isinstance(table, TokenTable):
                raise ConfigError(f"{type(table).__name__} is no table: it needs logits and dense")
            require(
                (table.rows, table.dim) == (vocabulary, dim),
                f"expected a table of {vocabulary} x {dim}, got {table.rows} x {table.dim}",
            )
            self.add_module(name, cast("nn.Module", table))
        self._lean: Remade[PackedLinear] = Remade()

    def table(self, use: str) -> nn.Module:
        """The table of a use."""
        return self.get_submodule(SHARED if self.tied else use)

    def read(self, use: str, ids: Tensor) -> Tensor:
        """Vectors of ids, with numbers of about size 1."""
        vectors: Tensor = self.table(use)(ids)
        return vectors * self.scale

    def dense(self, use: str) -> Tensor:
        """All vectors of a use, to look up and multiply with many times."""
        return cast("TokenTable", self.table(use)).dense()

    def loss(self, hidden: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        """Sums over rows of the smoothed cross-entropy and of the plain one, in nats.

        Args:
            hidden: ``(n, dim)``.
            labels: ``(n,)``.
            smoothing: The share of a label that is spread over all tokens.
        """
        table = self.table("output")
        if isinstance(table, FullTable):
            return smoothed_loss_of_products(hidden, table.weight, labels, smoothing)
        return smoothed_loss(cast("TokenTable", table).logits(hidden), labels, smoothing)

    def lean_logits(self, *, half: bool = False) -> PackedLinear:
        """``logits`` for inference, of rows ``(n, dim)``; made anew when weights have changed.

        Args:
            half: Whether they are rounded to bfloat16, which is enough to find the largest.
        """
        table = self.table("output")
        return self._lean.get(half, lambda: PackedLinear(self.dense("output"), half=half), table)

    def logits(self, hidden: Tensor) -> Tensor:
        """Products of vectors ``(..., dim)`` with all rows of the output's table."""
        return cast("TokenTable", self.table("output")).logits(hidden)
