"""Vectors that tell positions apart, for sequences of any length.

Reference:
    Vaswani et al., "Attention Is All You Need", NeurIPS 2017, arXiv:1706.03762, section 3.5.

Differs from the paper:
    Sines fill the first half of a vector and cosines the second, not every other place.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

# Wavelengths go from 2 pi to so many times that.
LONGEST = 10_000.0
FIRST_ROOM = 256


class Sinusoids(nn.Module):
    """Positions as sines and cosines of many wavelengths; nothing is learned.

    Args:
        dim: Width of the vectors, even.

    Example:
        >>> Sinusoids(8)(3).shape
        torch.Size([3, 8])
    """

    table: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim
        self.register_buffer("table", sinusoids(FIRST_ROOM, dim), persistent=False)

    def forward(self, length: int) -> Tensor:
        """The vectors ``(length, dim)`` of the first positions."""
        if length > len(self.table):
            room = 2 ** math.ceil(math.log2(length))
            # A tensor made in inference mode would be of no use in training.
            with torch.inference_mode(False):
                self.table = sinusoids(room, self.dim).to(self.table)
        return self.table[:length]


def sinusoids(length: int, dim: int) -> Tensor:
    """The vectors ``(length, dim)`` of positions from 0 on."""
    half = -(-dim // 2)
    rates = LONGEST ** (-torch.arange(half, dtype=torch.float64) / max(half - 1, 1))
    angles = torch.arange(length, dtype=torch.float64)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)[:, :dim].float()
