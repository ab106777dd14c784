"""A walk over grids of codes in the order in which an entropy coder writes them."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor

from smalti.errors import ShapeError, require
from smalti.priors.level import Level
from smalti.quantizers.border import checked_codes


class Stepper(ABC):
    """Says how likely each next code is, then takes the code: row by row, codebook fastest.

    A coder that knows all codes and one that reads them one by one walk alike, and get the
    same bits: what a step gives depends on the codes that were pushed, on nothing else.

    Args:
        level: What the grids look like.
        count: How many grids are walked at the same time.
    """

    def __init__(self, level: Level, count: int) -> None:
        self.level, self.count = level, count
        self.position = 0
        self._known: Tensor | None = None

    @property
    def done(self) -> bool:
        """Whether all codes were pushed."""
        return self.position == self.level.num_codes

    @property
    def place(self) -> tuple[int, int, int]:
        """Row, column and codebook of the next code."""
        cell, book = divmod(self.position, self.level.num_codebooks)
        return *divmod(cell, self.level.grid[1]), book

    def logits(self) -> Tensor:
        """Logits ``(count, size)`` of the next code."""
        self._require_more()
        if self._known is None:
            self._known = self._next()
        return self._known

    def probabilities(self) -> Tensor:
        """Probabilities ``(count, size)`` of the next code, float64."""
        return self.logits().double().softmax(dim=-1)

    def push(self, codes: Tensor) -> None:
        """Go on to the next place; ``codes`` ``(count,)`` are those of this one."""
        self._require_more()
        require(
            tuple(getattr(codes, "shape", ())) == (self.count,),
            f"expected a code for each grid, ({self.count},), got "
            f"{tuple(getattr(codes, 'shape', ()))}",
            ShapeError,
        )
        book = self.place[2]
        self.advance(checked_codes(codes[:, None], (self.level.code_sizes[book],))[:, 0])

    def advance(self, codes: Tensor) -> None:
        """``push`` of codes that are known to be right, such as those drawn from the logits."""
        # A place is computed whether or not anybody asked: later ones build on it.
        self.logits()
        self._take(codes)
        self._known = None
        self.position += 1

    @abstractmethod
    def _next(self) -> Tensor:
        """The logits of this place; called once a place."""

    @abstractmethod
    def _take(self, codes: Tensor) -> None:
        """Remember the codes of this place."""

    def _require_more(self) -> None:
        require(
            not self.done,
            f"all {self.level.num_codes} codes of the grids were pushed; make a new stepper",
        )
