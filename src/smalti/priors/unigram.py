"""The unigram prior: codes are independent, each place has counted probabilities.

Reference:
    Roy, Vaswani, Neelakantan, Parmar, "Theory and Experiments on Vector Quantized
    Autoencoders", 2018, arXiv:1805.11063, table 2 (the prior of the row "VQ-VAE").

Differs from the paper:
    Laplace smoothing, so that a code that was never seen at a place has a probability too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from smalti.errors import DataError, require
from smalti.priors.base import priors
from smalti.priors.border import checked_grid
from smalti.priors.independent import Independent
from smalti.priors.level import Level
from smalti.quantizers.border import as_stream
from smalti.quantizers.settings import number


@priors.register("unigram")
class Unigram(Independent):
    """Codes are as likely at a place as they were counted there. Before ``fit``: uniform.

    Args:
        level: Grid and code sizes of the codes.
        above: The levels above; they change nothing.
        smoothing: Added to each count.

    Example:
        >>> prior = Unigram(level=((1, 1), (2,))).fit(torch.tensor([0, 0, 1]).view(3, 1, 1, 1))
        >>> prior.table(0).flatten()  # (2 + 1) / (3 + 2) and (1 + 1) / (3 + 2)
        tensor([0.6000, 0.4000], dtype=torch.float64)
    """

    example: ClassVar[dict[str, Any]] = {"smoothing": 0.5}
    counts: Tensor

    def __init__(
        self,
        level: Level | Sequence[Any],
        above: Sequence[Any] = (),
        *,
        smoothing: float = 1.0,
    ) -> None:
        super().__init__(level, above)
        self.smoothing = number("smoothing", smoothing, above=0)
        # The codebooks side by side.
        shape = (*self.level.grid, sum(self.level.code_sizes))
        self.register_buffer("counts", torch.zeros(shape, dtype=torch.int64))

    @torch.no_grad()
    def fit(self, batches: Tensor | Iterable[Tensor]) -> Self:
        """Count the codes of one tensor, or of a stream of them, from nothing.

        A stream is read once, a batch at a time; a bad batch leaves the old counts.
        """
        counts = torch.zeros_like(self.counts)
        flat = counts.reshape(-1)
        width = counts.shape[-1]
        begin = torch.tensor(self.level.offsets, device=counts.device)
        cells = torch.arange(0, counts.numel(), width, device=counts.device)
        begin = begin + cells.view(*self.level.grid, 1)
        seen = 0
        for batch in as_stream(batches):
            codes = checked_grid(batch, self.level).to(counts.device)
            flat += torch.bincount((codes + begin).reshape(-1), minlength=len(flat))
            seen += len(codes)
        require(seen > 0, "expected grids of codes to count, got none", DataError)
        self.counts.copy_(counts)
        return self

    def table(self, book: int) -> Tensor:
        """Smoothed counts, as shares."""
        first, size = self.level.offsets[book], self.level.code_sizes[book]
        counts = self.counts[..., first : first + size]
        # Whole numbers are added before smoothing: exact, in whatever order.
        total = counts.sum(dim=-1, keepdim=True).double() + self.smoothing * size
        return (counts.double() + self.smoothing) / total
