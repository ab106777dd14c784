"""Priors under which the codes of a grid are independent of each other."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from smalti.priors.base import Prior
from smalti.priors.sampling import draw, uniforms
from smalti.priors.stepper import Stepper


class Independent(Prior):
    """Every place and codebook has its own probabilities, whatever the other codes are."""

    @abstractmethod
    def table(self, book: int) -> Tensor:
        """Probabilities ``(height, width, size)`` of a codebook's codes, float64."""

    def _nats(
        self,
        codes: Tensor,
        above: tuple[Tensor, ...],
        assignments: Tensor | None,
        dtype: torch.dtype,
    ) -> Tensor:
        del above
        rows = torch.arange(self.level.grid[0], device=codes.device)[:, None]
        columns = torch.arange(self.level.grid[1], device=codes.device)
        found = []
        for book, size in enumerate(self.level.code_sizes):
            table = self.table(book)
            if assignments is None:
                # Looked up first: a uniform table is one number, seen many times.
                found.append(-table[rows, columns, codes[..., book]].log())
            else:
                found.append(-(assignments[..., book, :size] * table.log()).sum(dim=-1))
        return torch.stack(found, dim=-1).to(dtype)

    def _sample(
        self,
        count: int,
        above: tuple[Tensor, ...],
        generator: torch.Generator | None,
        temperature: float,
        cached: bool,
    ) -> Tensor:
        # Nothing builds on earlier places, so there is nothing to keep, and one pass does all.
        del above, cached
        grid = self.level.grid
        books = [
            draw(
                self.table(book).log(), uniforms((*grid, count), generator, self.here), temperature
            )
            for book in range(self.level.num_codebooks)
        ]
        return torch.stack(books, dim=-1).movedim(2, 0).contiguous()

    def _stepper(self, count: int, above: tuple[Tensor, ...]) -> Stepper:
        del above
        return IndependentWalk(self, count)


class IndependentWalk(Stepper):
    """Reads the tables place by place.

    Probabilities are quotients of exact numbers, the same on every machine. Logits are
    their logarithms, whose last bit may differ between machines.

    Args:
        prior: Whose tables are read.
        count: How many grids are walked at the same time.
    """

    def __init__(self, prior: Independent, count: int) -> None:
        super().__init__(prior.level, count)
        self.tables = [prior.table(book) for book in range(prior.level.num_codebooks)]

    def probabilities(self) -> Tensor:
        """Probabilities ``(count, size)`` of the next code, float64."""
        self._require_more()
        return self._row().repeat(self.count, 1)

    def _next(self) -> Tensor:
        return self._row().log().repeat(self.count, 1)

    def _take(self, codes: Tensor) -> None:
        del codes

    def _row(self) -> Tensor:
        row, column, book = self.place
        return self.tables[book][row, column]
