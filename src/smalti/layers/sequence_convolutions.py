"""Convolutions along sequences; vectors last, as attention has them.

Each is a dense layer over neighbours laid side by side, which for narrow kernels is as fast as
a convolution and needs no change of layout.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from smalti.layers.packed_linear import PackedLinear


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
        out: Tensor = x + self.dense(self._windows(x, mask))
        return out

    def lean(self, x: Tensor, mask: Tensor | None, dense: PackedLinear) -> Tensor:
        """``forward`` for inference, with the dense layer given packed."""
        windows = self._windows(x, mask)
        made = dense.added(windows.view(-1, windows.shape[2]), x.view(-1, x.shape[2]))
        return made.view(x.shape)

    def _windows(self, x: Tensor, mask: Tensor | None) -> Tensor:
        bent = functional.gelu(self.norm(x))
        if mask is not None:
            bent = bent * mask
        around = functional.pad(bent, (0, 0, 1, 1))
        return torch.cat([around[:, :-2], bent, around[:, 2:]], dim=-1)


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
