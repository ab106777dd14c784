"""The uniform prior: all codes are equally likely.

Reference:
    van den Oord, Vinyals, Kavukcuoglu, "Neural Discrete Representation Learning", NeurIPS 2017,
    arXiv:1711.00937, section 3.1 (the prior while the autoencoder is trained).

Differs from the paper:
    Nothing. Its rate is the ceiling that every learned prior must stay under.
"""

from __future__ import annotations

import torch
from torch import Tensor

from smalti.priors.base import priors
from smalti.priors.independent import Independent


@priors.register("uniform")
class Uniform(Independent):
    """All codes are equally likely; there is nothing to learn.

    Args:
        level: Grid and code sizes of the codes.
        above: The levels above; they change nothing.

    Example:
        >>> prior = Uniform(level=((2, 2), (8,)))
        >>> prior.nats(torch.zeros(1, 2, 2, 1, dtype=torch.int64)) / torch.tensor(2.0).log()
        tensor([12.0000], dtype=torch.float64)
    """

    def table(self, book: int) -> Tensor:
        """One number, seen from every place and code."""
        size = self.level.code_sizes[book]
        share = torch.full((), 1 / size, dtype=torch.float64, device=self.here.device)
        return share.expand(*self.level.grid, size)
