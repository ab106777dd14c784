"""How a gradient crosses the choice of a codeword.

Reference:
    Bengio, Leonard, Courville, "Estimating or Propagating Gradients Through Stochastic
    Neurons", 2013, arXiv:1308.3432 (straight-through). Fifty et al., "Restructuring Vector
    Quantization with the Rotation Trick", ICLR 2025, arXiv:2410.06424, section 4.

Differs from the paper:
    The forward value is the codeword itself, to the last bit, not ``x + (q - x)`` and not a
    rotated ``x``: decoding the codes gives exactly what the forward pass gave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from smalti.layers.applying import applied

# Directions of shorter vectors are noise; the gradient then passes unchanged.
SHORTEST = 1e-6


class _StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, chosen: Tensor) -> Tensor:
        del ctx, x
        return chosen.view_as(chosen)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        del ctx
        return gradients[0], None


class _Rotation(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, chosen: Tensor) -> Tensor:
        ctx.save_for_backward(x, chosen)
        return chosen.view_as(chosen)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        x, chosen = ctx.saved_tensors
        return rotated(gradients[0], x, chosen), None


def straight_through(x: Tensor, chosen: Tensor) -> Tensor:
    """``chosen`` going forward; going back, its gradient belongs to ``x``."""
    out: Tensor = applied(_StraightThrough, x, chosen.detach())
    return out


def rotated(gradient: Tensor, x: Tensor, chosen: Tensor) -> Tensor:
    """The gradient turned by the rotation (and stretch) that takes ``chosen`` to ``x``."""
    x_length = x.norm(dim=-1, keepdim=True)
    chosen_length = chosen.norm(dim=-1, keepdim=True)
    x_unit = x / x_length.clamp(min=SHORTEST)
    chosen_unit = chosen / chosen_length.clamp(min=SHORTEST)
    middle = x_unit + chosen_unit
    middle = middle / middle.norm(dim=-1, keepdim=True).clamp(min=SHORTEST)
    turned = (
        gradient
        - 2 * middle * (middle * gradient).sum(-1, keepdim=True)
        + 2 * x_unit * (chosen_unit * gradient).sum(-1, keepdim=True)
    )
    usable = (x_length > SHORTEST) & (chosen_length > SHORTEST)
    return torch.where(usable, turned * chosen_length / x_length.clamp(min=SHORTEST), gradient)


@dataclass(frozen=True)
class StraightThrough:
    """The encoder receives the decoder's gradient as it is."""

    kind: ClassVar[str] = "straight-through"

    def __call__(self, x: Tensor, chosen: Tensor) -> Tensor:
        """``chosen`` with a gradient for ``x``."""
        return straight_through(x, chosen)


@dataclass(frozen=True)
class Rotation:
    """The gradient is turned along with the vector: it keeps its angle to the codeword."""

    kind: ClassVar[str] = "rotation"

    def __call__(self, x: Tensor, chosen: Tensor) -> Tensor:
        """``chosen`` with a gradient for ``x``."""
        out: Tensor = applied(_Rotation, x, chosen.detach())
        return out


GRADIENTS = {kind.kind: kind for kind in (StraightThrough, Rotation)}
Gradient = StraightThrough | Rotation
