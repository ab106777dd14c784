"""How a codebook learns: by moving averages of its vectors, or by gradient descent.

Reference:
    van den Oord, Vinyals, Kavukcuoglu, "Neural Discrete Representation Learning", NeurIPS
    2017, arXiv:1711.00937, appendix A.1 (moving averages). The other starts of the
    statistics are those of the published implementations they are named after.

Differs from the paper:
    The default statistics are *lazy*: counts and sums start at zero, a codeword stays where
    it started until a vector first chooses it and is the ratio of sum and count from then
    on. The bias of a moving average that starts at zero cancels in the ratio, so there
    is nothing to correct, and no smoothing pulls unused codewords to the origin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from smalti.quantizers.settings import number, word

# Below this a count is rounding, not usage.
USED = 1e-8
EPSILON = 1e-5
# How the statistics start: (count, sum), where the sum may be the codeword or noise.
STATISTICS = ("lazy", "ones", "sonnet", "zalando", "tensor2tensor")


@dataclass(frozen=True)
class MovingAverage:
    """Codewords are moving averages of the vectors that chose them.

    Args:
        decay: The share of the old statistics that each step keeps, gamma in the papers.
        statistics: ``"lazy"``, or for studies the start of a published implementation:
            ``"ones"`` (count 1, sum the codeword), ``"sonnet"`` (both zero, corrected for
            bias), ``"zalando"`` (count zero, sum noise, smoothed counts stored back),
            ``"tensor2tensor"`` (count zero, sum the codeword). All but ``"lazy"`` smooth counts.
    """

    kind: ClassVar[str] = "ema"
    decay: float = 0.99
    statistics: str = "lazy"

    def __post_init__(self) -> None:
        number("decay", self.decay, least=0, below=1)
        word("statistics", self.statistics, STATISTICS)

    def first_statistics(self, codewords: Tensor) -> tuple[Tensor, Tensor]:
        """Counts ``(parts, size)`` and sums ``(parts, size, dim)`` before the first step."""
        counts = codewords.new_zeros(codewords.shape[:2])
        if self.statistics == "ones":
            return counts + 1, codewords.clone()
        if self.statistics == "tensor2tensor":
            return counts, codewords.clone()
        if self.statistics == "zalando":
            return counts, torch.randn_like(codewords)
        return counts, torch.zeros_like(codewords)

    def step(self, codewords: Tensor, counts: Tensor, sums: Tensor, steps: Tensor) -> None:
        """Move ``codewords`` in place to what the updated statistics say."""
        if self.statistics == "lazy":
            used = (counts > USED).unsqueeze(-1)
            means = sums / counts.clamp(min=USED).unsqueeze(-1)
            codewords.copy_(torch.where(used, means, codewords))
            return
        if self.statistics == "sonnet":
            share = 1 - self.decay ** steps.float()
            counts, sums = counts / share, sums / share
        total = counts.sum(dim=1, keepdim=True)
        smoothed = (counts + EPSILON) / (total + counts.shape[1] * EPSILON) * total
        # Before anything was counted there is nothing to divide by.
        means = torch.where(total.unsqueeze(-1) > 0, sums / smoothed.unsqueeze(-1), codewords)
        codewords.copy_(means)
        if self.statistics == "zalando":
            counts.copy_(smoothed)


@dataclass(frozen=True)
class GradientDescent:
    """Codewords are parameters; the loss pulls each to the vectors that chose it."""

    kind: ClassVar[str] = "gradient"
    # Usage is followed all the same, so that dead codewords are found.
    decay: ClassVar[float] = 0.99


LEARNING = {kind.kind: kind for kind in (MovingAverage, GradientDescent)}
Learning = MovingAverage | GradientDescent
