"""Where codewords are before the first step: at random, on data, or spread over data.

Reference:
    Arthur, Vassilvitskii, "k-means++: The Advantages of Careful Seeding", SODA 2007
    (``KMeansStart``).

Differs from the paper:
    ``KMeansStart`` keeps the best of a few candidates for each centre and runs a few Lloyd
    steps after the seeding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from smalti.errors import require
from smalti.quantizers.nearest import nearest
from smalti.quantizers.sampling import draw
from smalti.quantizers.scatter import sum_by_code
from smalti.quantizers.settings import count, number


@dataclass(frozen=True)
class RandomStart:
    """Normal numbers, whatever the data are.

    Args:
        scale: Their standard deviation.
    """

    kind: ClassVar[str] = "random"
    scale: float = 1.0
    needs_data: ClassVar[bool] = False

    def __post_init__(self) -> None:
        number("the scale of a random start", self.scale, above=0)


@dataclass(frozen=True)
class DataStart:
    """Vectors drawn from the data; jittered copies where there are too few."""

    kind: ClassVar[str] = "data"
    needs_data: ClassVar[bool] = True

    def codewords(self, x: Tensor, mask: Tensor | None, size: int) -> Tensor:
        """``(parts, size, dim)`` drawn from ``x`` ``(parts, n, dim)``."""
        return draw(x, mask, size)


@dataclass(frozen=True)
class KMeansStart:
    """Vectors drawn far apart from each other, then moved to the middle of their own.

    Args:
        iterations: Lloyd steps after the seeding.
        sample: At most so many vectors are looked at.
    """

    kind: ClassVar[str] = "kmeans++"
    iterations: int = 10
    sample: int = 65_536
    needs_data: ClassVar[bool] = True

    def __post_init__(self) -> None:
        count("iterations", self.iterations, least=0)
        count("sample", self.sample)

    def codewords(self, x: Tensor, mask: Tensor | None, size: int) -> Tensor:
        """``(parts, size, dim)`` seeded from ``x`` ``(parts, n, dim)`` and refined."""
        require(
            not torch.compiler.is_compiling(),
            "a k-means++ start can't be compiled: call start_from(batches) first, then compile",
        )
        if mask is not None:
            x = x[:, mask]
        if x.shape[1] <= size:
            return draw(x, None, size)
        if x.shape[1] > self.sample:
            x = draw(x, None, max(self.sample, size))
        centres = _seed(x, size)
        for _ in range(self.iterations):
            codes = nearest(x, centres)
            counts, sums = sum_by_code(x, codes, size)
            means = sums / counts.clamp(min=1).unsqueeze(-1)
            centres = torch.where((counts > 0).unsqueeze(-1), means, centres)
        return centres


def _seed(x: Tensor, size: int) -> Tensor:
    """Draw centres in proportion to their squared distance from those drawn so far.

    Of a few candidates each time, the one that leaves the least distance is kept.
    """
    parts, n, dim = x.shape
    trials = 2 + int(math.log(size))
    every = torch.arange(parts, device=x.device)
    centres = x.new_empty(parts, size, dim)
    centres[:, 0] = x[every, torch.randint(n, (parts,), device=x.device)]
    gap = (x - centres[:, :1]).square().sum(-1)
    for index in range(1, size):
        # All gaps are zero when there are fewer distinct vectors than centres.
        picks = torch.multinomial(gap + 1e-30, trials, replacement=True)
        candidates = x.gather(1, picks.unsqueeze(-1).expand(parts, trials, dim))
        gaps = torch.cdist(candidates, x, compute_mode="donot_use_mm_for_euclid_dist").square_()
        gaps = torch.minimum(gaps, gap.unsqueeze(1))
        best = gaps.sum(-1).argmin(dim=1)
        gap, centres[:, index] = gaps[every, best], candidates[every, best]
    return centres


STARTS = {kind.kind: kind for kind in (RandomStart, DataStart, KMeansStart)}
Start = RandomStart | DataStart | KMeansStart
