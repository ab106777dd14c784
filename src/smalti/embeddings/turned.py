"""Turns rows onto axes where an error costs the same in every direction, then codes them.

Reference: Gardner, Rao, "Theoretical Analysis of the High-Rate Vector Quantization of LPC
Parameters", IEEE TSAP 3(5), 1995: a sensitivity matrix as the measure of an error; Ge, He, Ke,
Sun, "Optimized Product Quantization", IEEE TPAMI 36(4), 2014: axes dealt out evenly.

Differs from the paper: one matrix serves all rows, so that it can be stored, as int8, and any
method codes what was turned. Directions that hardly matter are not given up: a floor bounds
how much cheaper than the dearest an error may be.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from smalti.embeddings.axes import even_axes
from smalti.embeddings.base import (
    CompressedEmbedding,
    Compressor,
    build_compressor,
    build_table,
    compressors,
    tables,
)
from smalti.embeddings.size import Size
from smalti.embeddings.weighting import row_weights
from smalti.errors import require
from smalti.quantizers.settings import number

# Rows are turned back so many at a time, always: a matrix product rounds differently for
# other numbers of rows, and a row must have the same bits in any company.
BLOCK = 64
# Axes are dealt out to parts of at least this width.
NARROWEST = 6


class Turn(NamedTuple):
    """Row vectors times ``there`` are coded; times ``back`` they are rows again."""

    there: Tensor
    back: Tensor


def turn_of(table: Tensor, weights: Tensor, metric: Tensor | None, floor: float) -> Turn:
    """The turn after which squared error is what ``metric`` says, with even parts.

    Args:
        table: ``(rows, dim)``.
        weights: ``(rows,)`` how much each row counts.
        metric: ``(dim, dim)``, what errors cost; None for squared error.
        floor: The least cost of a direction, as a share of the dearest one's.
    """
    dim = table.shape[1]
    if metric is None:
        metric = torch.eye(dim, dtype=torch.float64)
    costs, directions = torch.linalg.eigh(metric.double())
    roots = costs.clamp(min=floor * float(costs.max())).sqrt()
    # Errors keep their size on the average: what is stored as float16 stays in its range.
    roots = roots / roots.square().mean().sqrt()
    stretch = ((directions * roots) @ directions.T).float()
    shrink = ((directions / roots) @ directions.T).float()
    widths = [width for width in range(NARROWEST, dim + 1) if dim % width == 0]
    parts = dim // widths[0] if widths else 1
    axes = even_axes(table @ stretch, weights, parts)
    return Turn(stretch @ axes.T, axes @ shrink)


@tables.register("turned")
class TurnedTable(CompressedEmbedding):
    """Vectors of another table times a stored matrix.

    Args:
        rows: How many vectors.
        dim: Width of a vector.
        rest: The table of the turned rows, or its spec.
    """

    holds: ClassVar[Mapping[str, str]] = {"turn": "codebooks", "steps": "codebooks"}
    turn: Tensor
    steps: Tensor

    def __init__(self, rows: int, dim: int, rest: Any) -> None:
        super().__init__(rows, dim)
        self.rest = build_table(rest)
        require(
            (self.rest.rows, self.rest.dim) == (rows, dim),
            f"a table of {self.rest.rows} x {self.rest.dim} can't be turned to {rows} x {dim}",
        )
        self.store("turn", torch.zeros(dim, dim), torch.int8)
        self.store("steps", torch.ones(dim, 1))

    @torch.no_grad()
    def fill(self, back: Tensor) -> None:
        """Store the matrix that turns rows back, a step for each of its rows."""
        steps = back.abs().amax(dim=1, keepdim=True).clamp(min=1e-30) / 127
        self.steps.copy_(steps)
        self.turn.copy_(back / steps)

    def back(self) -> Tensor:
        """The matrix as it is stored."""
        return self.read("turn") * self.read("steps")

    def lookup(self, ids: Tensor) -> Tensor:
        """Look up the turned rows and turn them back."""
        back = self.back()
        turned = self.rest.lookup(ids).to(back.dtype)
        if torch.compiler.is_compiling():
            return turned @ back
        padded = functional.pad(turned, (0, 0, 0, -len(turned) % BLOCK))
        blocks = [block @ back for block in padded.split(BLOCK)]
        return torch.cat(blocks)[: len(turned)] if blocks else turned

    def score(self, hidden: Tensor) -> Tensor:
        """Turn the hidden states instead of the rows."""
        back = self.back()
        return self.rest.score(hidden.to(back.dtype) @ back.T)

    def size(self) -> Size:
        """The bytes of the turned rows' table and of the matrix."""
        return self.rest.size() + turn_size(self.dim)


@compressors.register("turned")
class Turned(Compressor):
    """Codes rows on axes where errors cost alike and parts are even.

    ``fit(..., metric=...)`` says what errors cost; without it squared error counts, and rows
    are only rotated.

    Args:
        rest: The compressor of the turned rows.
        floor: The least cost of a direction, as a share of the dearest one's.
        power: How much token counts matter for the axes: 0 not at all, 1 fully.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "rest": {"compressor": "product", "num_codebooks": 6, "codebook_size": 16}
    }

    def __init__(self, rest: Any = "product", floor: float = 0.01, power: float = 0.5) -> None:
        self.rest = build_compressor(rest)
        self.floor = number("floor", floor, above=0, most=1)
        self.power = number("power", power, least=0, most=1)
        self._metric: Tensor | None = None

    @property
    def heeds_metric(self) -> bool:
        """It does: that is what rows are turned for."""
        return True

    def under(self, metric: Tensor) -> Turned:
        """This compressor with what errors cost; turned rows cost alike."""
        made = copy.copy(self)
        made._metric = metric
        return made

    def turn(self, table: Tensor, counts: Tensor | None, metric: Tensor | None) -> Turn:
        """The turn of a table."""
        return turn_of(table, row_weights(counts, len(table), self.power), metric, self.floor)

    def outline(self, rows: int, dim: int) -> TurnedTable:
        """The table of the turned rows, and a matrix."""
        return TurnedTable(rows, dim, self.rest.outline(rows, dim))

    def expected_size(
        self, rows: int, dim: int, *, counts: Tensor | None = None, special: Sequence[int] = ()
    ) -> Size:
        """The bytes of the turned rows and of the matrix."""
        rest = self.rest.expected_size(rows, dim, counts=counts, special=special)
        return rest + turn_size(dim)

    def _fit(
        self,
        table: Tensor,
        counts: Tensor | None,
        special: list[int],
        generator: torch.Generator,
    ) -> TurnedTable:
        turn = self.turn(table, counts, self._metric)
        rest = self.rest._fit(table @ turn.there, counts, special, generator)
        made = TurnedTable(len(table), table.shape[1], rest)
        made.fill(turn.back)
        return made


def turn_size(dim: int) -> Size:
    """The bytes of the matrix that turns rows back."""
    return Size(codebooks=dim * dim + 4 * dim)
