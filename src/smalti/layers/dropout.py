"""Dropout that costs little on a processor: one random byte decides over one number.

Reference:
    Srivastava, Hinton, Krizhevsky, Sutskever, Salakhutdinov, "Dropout: A Simple Way to Prevent
    Neural Networks from Overfitting", JMLR 2014, section 4.

Differs from the paper:
    The share is rounded to whole 256ths; what is kept is scaled for the rounded share, so that
    means stay what they were. Scaling happens in training, not in evaluation.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from smalti.errors import require
from smalti.layers.applying import applied

STEPS = 256


class Dropout(nn.Module):
    """Sets a random share of numbers to zero in training, and scales the others up.

    Args:
        share: Which share, rounded to 256ths.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        require(0 <= share < 1, f"dropout must be a number >= 0 and < 1, got {share!r}")
        self.share = share
        # A share close to 1 keeps something.
        self.dropped = min(round(share * STEPS), STEPS - 1)

    def forward(self, x: Tensor) -> Tensor:
        """Numbers of any shape."""
        if not self.training or self.dropped == 0:
            return x
        kept = random_bytes(x) >= self.dropped
        factor = STEPS / (STEPS - self.dropped)
        out: Tensor = applied(_Masked, x, kept, factor)
        return out

    def extra_repr(self) -> str:
        """The share, as ``print`` shows it."""
        return f"share={self.share}"


def random_bytes(x: Tensor) -> Tensor:
    """Random uint8 of the shape of ``x``: eight of them from each number that is drawn."""
    words = torch.empty(-(-x.numel() // 8), dtype=torch.int64, device=x.device)
    # From the lowest number to the highest, both included.
    words.random_(-(2**63), None)
    return words.view(torch.uint8)[: x.numel()].view(x.shape)


class _Masked(torch.autograd.Function):
    """The product with a mask and a factor; remembers the mask's bytes alone."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kept: Tensor, factor: float) -> Tensor:
        ctx.save_for_backward(kept)
        ctx.factor = factor
        return (x * kept).mul_(factor)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (kept,) = ctx.saved_tensors
        return (gradients[0] * kept).mul_(ctx.factor), None, None
