"""Depthwise quantization: a feature tensor is cut along an axis, one codebook a slice.

Reference:
    Fostiropoulos, Boehm, "Implicit Feature Decoupling with Depthwise Quantization", CVPR
    2022, arXiv:2203.08080, section 4 and table 2 (channel against pixel).

Differs from the paper:
    Both axes quantize the very same sub-vectors, a channel segment at one position, and
    differ only in which codebook serves it: that of the segment, or that of the row. The
    comparison is then one of grouping alone, at equal rate. Where the width does not divide,
    a row's codebook serves padded segments beside full ones, so padding takes part in its
    search and in its loss (not in the distortion).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from smalti.errors import ConfigError, ShapeError, require
from smalti.quantizers.base import Quantized, quantizers
from smalti.quantizers.product import PartSetting, Product
from smalti.quantizers.settings import word
from smalti.quantizers.stacked import mean_square


@quantizers.register("depthwise")
class Depthwise(Product):
    """Codebooks for the segments of the channels, or for the rows of a grid.

    Args:
        dim: Channels, the last axis (``ChannelsFirst`` moves it there).
        num_codebooks: Segments of the channels; with ``axis="pixel"`` also groups of rows.
        codebook_size: Codewords of each codebook.
        axis: ``"channel"``: a segment's codebook serves all positions. ``"pixel"``: a row's
            codebook serves all segments; tensors are then ``(..., rows, columns, dim)``
            and the rows must divide into ``num_codebooks`` groups.
        part: See ``Product``.
        reduction: See ``Product``.
        settings: See ``Product``.
    """

    def __init__(
        self,
        dim: int,
        num_codebooks: int,
        codebook_size: int | None = None,
        *,
        axis: str = "channel",
        part: PartSetting = "vector",
        reduction: str = "sum",
        **settings: Any,
    ) -> None:
        chosen_axis = word("axis", axis, ("channel", "pixel"))
        require("combine" not in settings, "Depthwise concatenates; for a sum use Product")
        super().__init__(
            dim, num_codebooks, codebook_size, part=part, reduction=reduction, **settings
        )
        require(
            axis == "channel" or self.stack is not None,
            "axis='pixel' needs parts that can be stacked: 'vector', 'soft_em' or 'gumbel'",
        )
        self.axis = chosen_axis

    def spec(self) -> dict[str, Any]:
        """The settings as plain data; ``build`` is the inverse."""
        settings = super().spec()
        settings.pop("combine")
        return {**settings, "axis": self.axis}

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Quantized:
        """Quantize a tensor ``(..., dim)``; see :class:`Quantizer`."""
        if self.axis == "channel":
            return super().forward(x, mask)
        if mask is not None:
            raise ConfigError("axis='pixel' takes no mask: crop the grid instead")
        assert self.stack is not None  # checked at construction
        stack = self._stack_rows(self.checked(x))
        out = self.stack.quantize(stack, None)
        vectors = self._unstack_rows(out.vectors, x.shape).to(x.dtype)
        error = (x.float() - vectors.float()).detach().reshape(1, -1, self.dim)
        return Quantized(
            vectors=vectors,
            codes=self._unstack_codes(out.codes, x.shape[:-1]),
            loss=out.loss.sum() if self.reduction == "sum" else out.loss.mean(),
            metrics={**out.metrics, "distortion": mean_square(error, None)[0]},
        )

    def encode(self, x: Tensor) -> Tensor:
        """The codes ``(..., num_codebooks)`` of a tensor ``(..., dim)``."""
        if self.axis == "channel":
            return super().encode(x)
        assert self.stack is not None  # checked at construction
        codes = self.stack.choose(self._stack_rows(self.checked(x)))
        return self._unstack_codes(codes, x.shape[:-1])

    def decode(self, codes: Tensor) -> Tensor:
        """The tensor ``(..., dim)`` of codes ``(..., num_codebooks)``."""
        if self.axis == "channel":
            return super().decode(codes)
        assert self.stack is not None  # checked at construction
        codes = self.checked_codes(codes)
        rows = self._rows(codes.shape[:-1])
        grid = codes.reshape(-1, self.slices, rows // self.slices, codes.shape[-2], self.slices)
        stack = grid.transpose(0, 1).reshape(self.slices, -1)
        shape = torch.Size((*codes.shape[:-1], self.dim))
        return self._unstack_rows(self.stack.look_up(stack), shape)

    def _start(self, x: Tensor) -> None:
        if self.axis == "channel":
            super()._start(x)
            return
        # A sample has lost its rows: every row's codebook starts from all segments.
        assert self.stack is not None  # checked at construction
        segments = self._slice(x).reshape(1, -1, self.width)
        self.stack.begin(segments.expand(self.slices, -1, -1).contiguous(), None, anew=True)

    def _rows(self, shape: torch.Size) -> int:
        require(
            len(shape) >= 2 and shape[-2] % self.slices == 0,
            f"expected (..., rows, columns, {self.dim}) with rows divisible by {self.slices}, "
            f"got {(*shape, self.dim)}",
            ShapeError,
        )
        return shape[-2]

    def _stack_rows(self, x: Tensor) -> Tensor:
        """``(..., rows, columns, dim)`` to ``(groups, n, width)``, codebook by row group."""
        rows, columns = self._rows(x.shape[:-1]), x.shape[-2]
        padded = torch.nn.functional.pad(x, (0, self.slices * self.width - self.dim))
        grid = padded.reshape(
            -1, self.slices, rows // self.slices, columns, self.slices, self.width
        )
        return grid.transpose(0, 1).reshape(self.slices, -1, self.width)

    def _unstack_rows(self, stack: Tensor, shape: torch.Size) -> Tensor:
        rows, columns = shape[-3], shape[-2]
        grid = stack.view(
            self.slices, -1, rows // self.slices, columns, self.slices * self.width
        ).transpose(0, 1)
        return grid.reshape(*shape[:-1], self.slices * self.width)[..., : self.dim]

    def _unstack_codes(self, codes: Tensor, shape: torch.Size) -> Tensor:
        rows, columns = shape[-2], shape[-1]
        grid = codes.view(self.slices, -1, rows // self.slices, columns, self.slices)
        return grid.transpose(0, 1).reshape(*shape, self.slices)
