"""Convolutions along sequences; vectors last, as attention has them.

Each is a dense layer over neighbours laid side by side, which for narrow kernels is as fast as
a convolution and needs no change of layout.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class ResidualConvolution(nn.Module):
    """What comes in, plus a convolution over three neighbours of its normed, bent values.

    Args:
        dim: Width of the vectors, in and out.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.dense = nn.Linear(3 * dim, dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Vectors ``(batch, length, dim)``.

        Args:
            x: The vectors.
            mask: ``(batch, length, 1)``, False where there is padding: it counts as nothing,
                as what lies beyond the ends does.
        """
        out: Tensor = x + self.dense(torch.cat(self.neighbours(x, mask), dim=-1))
        return out

    def neighbours(self, x: Tensor, mask: Tensor | None) -> list[Tensor]:
        """The normed, bent values of the one before, of itself and of the one after."""
        bent = functional.gelu(self.norm(x))
        if mask is not None:
            bent = bent * mask
        around = functional.pad(bent, (0, 0, 1, 1))
        return [around[:, :-2], bent, around[:, 2:]]


class Halving(nn.Module):
    """Two neighbours become one vector.

    Args:
        dim: Width of the vectors, in and out.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.dense = nn.Linear(2 * dim, dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Vectors ``(batch, length, dim)`` of even length; padding counts as nothing."""
        bent = functional.gelu(self.norm(x))
        if mask is not None:
            bent = bent * mask
        batch, length, dim = x.shape
        out: Tensor = self.dense(bent.reshape(batch, length // 2, 2 * dim))
        return out


class Doubling(nn.Module):
    """A vector becomes two neighbours.

    Args:
        dim: Width of the vectors, in and out.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dense = nn.Linear(dim, 2 * dim)

    def forward(self, x: Tensor) -> Tensor:
        """Vectors ``(batch, length, dim)``, twice as many of them out."""
        batch, length, dim = x.shape
        out: Tensor = self.dense(x).view(batch, 2 * length, dim)
        return out
