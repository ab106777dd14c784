"""The layout of images: channels on axis 1 instead of last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from smalti.errors import ShapeError, require
from smalti.quantizers.base import Quantized, Quantizer, build, quantizers
from smalti.quantizers.border import as_stream


@quantizers.register("channels_first")
class ChannelsFirst(Quantizer):
    """Wraps a quantizer for tensors ``(batch, dim, ...)``.

    Codes keep the codebook on the last axis: an image ``(batch, dim, height, width)`` has
    codes ``(batch, height, width, num_codebooks)``, and a mask ``(batch, height, width)``.

    Args:
        inner: The quantizer, or its spec.

    Example:
        >>> import torch
        >>> from smalti.quantizers import VectorQuantizer
        >>> out = ChannelsFirst(VectorQuantizer(16, 32))(torch.randn(2, 16, 4, 4))
        >>> out.vectors.shape, out.codes.shape
        (torch.Size([2, 16, 4, 4]), torch.Size([2, 4, 4, 1]))
    """

    example: ClassVar[Mapping[str, Any]] = {
        "inner": {"quantizer": "vector", "dim": 8, "codebook_size": 16}
    }

    def __init__(self, inner: Quantizer | Mapping[str, Any]) -> None:
        made = inner if isinstance(inner, Quantizer) else build(inner)
        super().__init__(made.dim, made.code_sizes)
        self.inner = made
        self.learns_from_vectors = made.learns_from_vectors

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Quantized:
        """Quantize a tensor ``(batch, dim, ...)``; see :class:`Quantizer`."""
        out: Quantized = self.inner(self._channels_last(x), mask)
        return out._replace(vectors=out.vectors.movedim(-1, 1))

    def encode(self, x: Tensor) -> Tensor:
        """The codes ``(batch, ..., num_codebooks)`` of a tensor ``(batch, dim, ...)``."""
        return self.inner.encode(self._channels_last(x))

    def decode(self, codes: Tensor) -> Tensor:
        """The tensor ``(batch, dim, ...)`` of codes ``(batch, ..., num_codebooks)``."""
        require(
            isinstance(codes, Tensor) and codes.dim() >= 2,
            f"expected codes (batch, ..., {self.num_codebooks}), got "
            f"{tuple(getattr(codes, 'shape', ()))}",
            ShapeError,
        )
        return self.inner.decode(codes).movedim(-1, 1)

    def start_from(self, batches: Any) -> ChannelsFirst:
        """Start the codebooks from tensors ``(batch, dim, ...)``."""
        self.inner.start_from(self._channels_last(batch) for batch in as_stream(batches))
        return self

    def _channels_last(self, x: Tensor) -> Tensor:
        require(
            isinstance(x, Tensor) and x.dim() >= 2 and x.shape[1] == self.dim,
            f"expected (batch, {self.dim}, ...), got {tuple(getattr(x, 'shape', ()))}",
            ShapeError,
        )
        return x.movedim(1, -1)
