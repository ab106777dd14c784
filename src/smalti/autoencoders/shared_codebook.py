"""Slices of a vector that share one codebook."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from smalti.quantizers.base import Quantized, Quantizer


class SharedCodebook(Quantizer):
    """``slices`` equal parts of a vector, all quantized by the same quantizer.

    It is a part of an autoencoder and in no registry: its spec is that of the quantizer inside.

    Args:
        inner: Quantizes one slice.
        slices: How many a vector has.
    """

    def __init__(self, inner: Quantizer, slices: int) -> None:
        super().__init__(inner.dim * slices, inner.code_sizes * slices)
        self.inner = inner
        self.slices = slices
        self.learns_from_vectors = inner.learns_from_vectors

    def spec(self) -> dict[str, Any]:
        """The settings of the quantizer inside."""
        return self.inner.spec()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Quantized:
        """Quantize vectors ``(..., dim)``; see :class:`Quantizer`."""
        if mask is not None:
            mask = mask.unsqueeze(-1).expand(*mask.shape, self.slices)
        out: Quantized = self.inner(self._cut(x), mask)
        return out._replace(vectors=out.vectors.flatten(-2), codes=out.codes.flatten(-2))

    def encode(self, x: Tensor) -> Tensor:
        """The codes ``(..., num_codebooks)`` of vectors ``(..., dim)``, slice after slice."""
        return self.inner.encode(self._cut(x)).flatten(-2)

    def decode(self, codes: Tensor) -> Tensor:
        """The vectors ``(..., dim)`` of codes ``(..., num_codebooks)``."""
        codes = self.checked_codes(codes)
        return self.inner.decode(codes.unflatten(-1, (self.slices, -1))).flatten(-2)

    def _start(self, x: Tensor) -> None:
        self.inner.start_from(self._cut(x))

    def _cut(self, x: Tensor) -> Tensor:
        slices: Tensor = x.unflatten(-1, (self.slices, self.inner.dim))
        return slices
