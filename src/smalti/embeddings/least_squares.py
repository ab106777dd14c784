"""Codebooks fitted to given codes, all at once: weighted least squares with a sparse design."""

from __future__ import annotations

import torch
from torch import Tensor

# Two codewords that are always used together can share their sum in any way; a little
# pull towards the old ones decides.
PULL = 1e-3
# The equations of so many codewords take 2 GB.
MOST_CODEWORDS = 1 << 14


def refit(x: Tensor, codes: Tensor, weights: Tensor, codebooks: Tensor) -> Tensor:
    """The codebooks that decode ``codes`` as near to ``x`` as can be.

    Args:
        x: Vectors ``(n, width)``.
        codes: ``(n, stages)``.
        weights: ``(n,)`` how much each vector counts.
        codebooks: ``(stages, size, width)`` before; codewords without use stay as they are.
    """
    stages, size, width = codebooks.shape
    places = codes + torch.arange(stages) * size
    total = stages * size
    weights = (weights / weights.mean()).double()
    normal = torch.zeros(total, total, dtype=torch.float64)
    right = torch.zeros(total, width, dtype=torch.float64)
    weighted = x.double() * weights[:, None]
    for first in range(stages):
        right.index_add_(0, places[:, first], weighted)
        for second in range(stages):
            pairs = places[:, first] * total + places[:, second]
            normal.view(-1).index_add_(0, pairs, weights)
    pull = PULL * len(x) / total
    normal.diagonal().add_(pull)
    right += pull * codebooks.reshape(total, width).double()
    solved = torch.cholesky_solve(right, torch.linalg.cholesky(normal))
    return solved.to(x.dtype).view(stages, size, width)
