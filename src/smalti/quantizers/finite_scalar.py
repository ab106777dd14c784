"""Finite scalar quantization: each coordinate is squashed and rounded to a few levels.

Reference:
    Mentzer, Minnen, Agustsson, Tschannen, "Finite Scalar Quantization: VQ-VAE Made Simple",
    ICLR 2024, arXiv:2309.15505, section 3.

Differs from the paper:
    Each coordinate keeps a code of its own instead of one joint index, so nothing overflows;
    arithmetic is float32 always (in bfloat16 half of the levels can't be reached).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from smalti.errors import require
from smalti.quantizers.base import Quantized, Quantizer, quantizers
from smalti.quantizers.gradients import straight_through
from smalti.quantizers.stacked import mean_square

# Keeps the outermost levels within the reach of a tanh that never gets to 1.
REACH = 1.001


@quantizers.register("finite_scalar")
class FiniteScalar(Quantizer):
    """No codebook at all: coordinate i takes one of ``levels[i]`` fixed values.

    Args:
        dim: Width of the vectors, in and out; projected where it is not ``len(levels)``.
        levels: Number of values of each coordinate.

    Metrics: distortion (after projection and squashing, what rounding cost).
    """

    example: ClassVar[Mapping[str, Any]] = {"dim": 8, "levels": (8, 5, 5)}
    sizes: Tensor

    def __init__(self, dim: int, levels: Sequence[int] = (8, 5, 5, 5)) -> None:
        require(
            isinstance(levels, Iterable) and not isinstance(levels, str) and len(levels) >= 1,
            f"levels must name at least one coordinate, such as (8, 5, 5), got {levels!r}",
        )
        super().__init__(dim, levels)
        self.learns_from_vectors = True
        self.levels = self.code_sizes
        self.register_buffer("sizes", torch.tensor(self.levels), persistent=False)
        same = dim == len(self.levels)
        self.project_in = nn.Identity() if same else nn.Linear(dim, len(self.levels))
        self.project_out = nn.Identity() if same else nn.Linear(len(self.levels), dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Quantized:
        """Quantize vectors ``(..., dim)``; see :class:`Quantizer`."""
        flat = self.checked(x, mask).reshape(-1, self.dim)
        bounded = self._bound(self.project_in(flat))
        codes = self._round(bounded)
        scaled = bounded / (self.sizes // 2)
        values = straight_through(scaled, self._values(codes))
        vectors = self.project_out(values)
        error = (scaled - values).detach().unsqueeze(0)
        valid = None if mask is None else mask.reshape(-1)
        return Quantized(
            vectors=vectors.view(x.shape).to(x.dtype),
            codes=codes.view(*x.shape[:-1], len(self.levels)),
            loss=flat.new_zeros(()),
            metrics={"distortion": mean_square(error, valid)[0]},
        )

    def encode(self, x: Tensor) -> Tensor:
        """The codes ``(..., len(levels))`` of vectors ``(..., dim)``."""
        flat = self.checked(x).reshape(-1, self.dim)
        return self._round(self._bound(self.project_in(flat))).view(
            *x.shape[:-1], self.num_codebooks
        )

    def decode(self, codes: Tensor) -> Tensor:
        """The vectors ``(..., dim)`` of codes ``(..., len(levels))``."""
        flat = self.checked_codes(codes).reshape(-1, len(self.levels))
        vectors: Tensor = self.project_out(self._values(flat))
        return vectors.view(*codes.shape[:-1], self.dim)

    def _bound(self, x: Tensor) -> Tensor:
        """Squash each coordinate to the range of its levels, half a level off where even."""
        half = (self.sizes - 1) * REACH / 2
        offset = torch.where(self.sizes % 2 == 0, 0.5, 0.0)
        return torch.tanh(x + torch.atanh(offset / half)) * half - offset

    def _round(self, bounded: Tensor) -> Tensor:
        codes = bounded.detach().round().long() + self.sizes // 2
        return torch.minimum(codes.clamp(min=0), self.sizes - 1)

    def _values(self, codes: Tensor) -> Tensor:
        return (codes - self.sizes // 2).float() / (self.sizes // 2)
