"""Rows as small whole numbers, each row (or each group of its columns) with a scale.

Reference:
    Guan, Malevich, Yang, Park, Yuen, "Post-Training 4-bit Quantization on Embedding Tables",
    2019, arXiv:1911.02079, section 3 (row-wise uniform quantization, search of the range).

Differs from the paper:
    Symmetric: there is a scale and no offset. For each range that is tried, the scale is the
    one of least squares for its whole numbers, so few ranges are enough. A scale may be
    negative: whole numbers have a level more on the negative side, and so either side of a
    row can have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from smalti.embeddings.base import CompressedEmbedding, Compressor, compressors, tables
from smalti.embeddings.rounding import read_rows, storable
from smalti.errors import require
from smalti.quantizers.settings import count

# Where the best range of few bits lies, as shares of the largest number: clipping the largest
# makes the others finer. With more bits there is nothing to win.
RANGES = {2: (0.15, 0.6), 3: (0.35, 0.9), 4: (0.55, 1.0), 5: (0.76, 1.04), 6: (0.88, 1.06)}
SHARES = 9
# Numbers searched at a time, so that the work stays in the cache.
BLOCK_NUMBERS = 1 << 16


@tables.register("integer")
class IntegerTable(CompressedEmbedding):
    """Whole numbers and scales.

    The bits of a number are split into planes of 4, 2 and 1 bits (8 stay together), and a
    byte of a plane holds columns that are far apart. So a whole row is taken apart by a few
    operations on bytes, and rows begin at whole bytes.

    Args:
        rows: How many vectors.
        dim: Width of a vector.
        bits: Bits of a whole number, 2 to 8.
        group: How many columns share a scale; it must divide ``dim``. None: the whole row.
    """

    holds: ClassVar[Mapping[str, str]] = {"codes": "codes"}
    codes: Tensor
    scales: Tensor

    def __init__(self, rows: int, dim: int, bits: int = 8, group: int | None = None) -> None:
        super().__init__(rows, dim)
        self.bits = count("bits", bits, least=2, most=8)
        self.group = None if group is None else count("group", group)
        width = self.group or dim
        require(dim % width == 0, f"group must divide the width {dim}, got {width}")
        row_bytes = sum(plane_bytes(self.dim, plane) for plane in planes(self.bits))
        self.register_buffer("codes", torch.zeros(rows, row_bytes, dtype=torch.uint8))
        self.store("scales", torch.zeros(rows, dim // width), torch.float16)

    @classmethod
    @torch.no_grad()
    def holding(cls, numbers: Tensor, scales: Tensor, bits: int) -> IntegerTable:
        """A table of given whole numbers ``(rows, dim)`` and scales ``(rows, groups)``.

        Args:
            numbers: From ``-2**(bits - 1)`` to ``2**(bits - 1) - 1``.
            scales: What the numbers of each group are multiplied by.
            bits: Bits of a number.
        """
        rows, dim = numbers.shape
        width = dim // scales.shape[1]
        made = cls(rows, dim, bits, None if width == dim else width)
        left = (numbers + (1 << bits - 1)).to(torch.uint8)
        held = []
        for plane in planes(bits):
            lanes, size = 8 // plane, plane_bytes(dim, plane)
            part = functional.pad(left & ((1 << plane) - 1), (0, lanes * size - dim))
            shifts = torch.arange(0, 8, plane, dtype=torch.uint8).view(lanes, 1)
            held.append((part.view(rows, lanes, size) << shifts).sum(dim=1, dtype=torch.uint8))
            left = left >> plane if plane < 8 else left
        made.codes.copy_(torch.cat(held, dim=1))
        made.scales.copy_(storable(scales, torch.float16))
        return made

    def numbers(self, ids: Tensor) -> Tensor:
        """The whole numbers ``(n, dim)`` int8 of ids ``(n,)``."""
        held = self.codes.index_select(0, ids)
        if self.bits < 8:
            held = self._joined(held)
        # In int8 the difference wraps around to the right number also for 8 bits.
        return held.view(torch.int8) + (-(1 << self.bits - 1))

    def _joined(self, held: Tensor) -> Tensor:
        """Codes ``(n, dim)`` uint8 from the bytes ``(n, row_bytes)`` of their planes."""
        kinds = planes(self.bits)
        parts = held.split([plane_bytes(self.dim, plane) for plane in kinds], dim=1)
        codes = torch.zeros_like(held[:, :1])
        for plane, part in zip(reversed(kinds), reversed(parts), strict=True):
            mask = (1 << plane) - 1
            lanes = [(part >> shift) & mask for shift in range(0, 8, plane)]
            codes = (codes << plane) | torch.cat(lanes, dim=1)[:, : self.dim]
        return codes

    def lookup(self, ids: Tensor) -> Tensor:
        """Numbers times scales."""
        scales = read_rows(self, "scales", ids).unsqueeze(-1)
        numbers = self.numbers(ids).to(scales.dtype)
        groups: Tensor = numbers.unflatten(1, (scales.shape[1], -1))
        return (groups * scales).flatten(1)


def planes(bits: int) -> list[int]:
    """The powers of two that a number of bits is the sum of, the largest first.

    Example:
        >>> planes(6), planes(8)
        ([4, 2], [8])
    """
    return [plane for plane in (8, 4, 2, 1) if bits & plane]


def plane_bytes(dim: int, plane: int) -> int:
    """Bytes that ``dim`` pieces of ``plane`` bits take."""
    return -(-dim * plane // 8)


@compressors.register("integer")
class Integer(Compressor):
    """Rounds each row to whole numbers of ``bits`` bits.

    Args:
        bits: Bits of a number, 2 to 8.
        group: How many columns share a scale; it must divide the width. None: the whole row.

    Example:
        >>> Integer(bits=8).fit(torch.tensor([[1.0, -127.0, 63.4]])).dense()
        tensor([[   1., -127.,   63.]])
    """

    example: ClassVar[Mapping[str, Any]] = {"bits": 4, "group": 8}

    def __init__(self, bits: int = 8, group: int | None = None) -> None:
        self.bits = count("bits", bits, least=2, most=8)
        self.group = None if group is None else count("group", group)

    def outline(self, rows: int, dim: int) -> IntegerTable:
        """Whole numbers and scales."""
        return IntegerTable(rows, dim, self.bits, self.group)

    def _fit(
        self,
        table: Tensor,
        counts: Tensor | None,
        special: list[int],
        generator: torch.Generator,
    ) -> IntegerTable:
        del counts, special, generator
        rows, dim = table.shape
        width = self.group or dim
        require(dim % width == 0, f"group must divide the width {dim}, got {width}")
        half = 1 << self.bits - 1
        scales, numbers = [], []
        for part in table.view(-1, width).split(max(1, BLOCK_NUMBERS // width)):
            scales.append(best_scales(part, self.bits))
            steps = _steps(part, scales[-1]).clamp_(-half, half - 1)
            numbers.append(steps.to(torch.int16))
        return IntegerTable.holding(
            torch.cat(numbers).view(rows, dim), torch.cat(scales).view(rows, -1), self.bits
        )


def best_scales(pieces: Tensor, bits: int) -> Tensor:
    """A scale ``(n,)``, exact in float16, for each piece ``(n, width)`` of a row.

    Tries several ranges and either sign; keeps what leaves the least squared error, which with
    the best scale for given whole numbers q is |x|^2 - (x.q)^2 / q.q.
    """
    half = 1 << bits - 1
    plain = pieces.abs().amax(dim=1) / (half - 1)
    if bits not in RANGES:
        return plain.half().float()
    best, scales = torch.full_like(plain, -1.0), plain
    for share in torch.linspace(*RANGES[bits], SHARES).tolist():
        steps = _steps(pieces, plain * share)
        # A negative scale means that the level more is on the positive side.
        for low, high in ((-half, half - 1), (1 - half, half)):
            numbers = steps.clamp(low, high)
            along = torch.linalg.vecdot(pieces, numbers)
            square = torch.linalg.vecdot(numbers, numbers).clamp(min=1.0)
            better = along.square() / square > best
            best = torch.where(better, along.square() / square, best)
            scale = along / square if low == -half else -along / square
            scales = torch.where(better, scale, scales)
    return scales.half().float()


def _steps(pieces: Tensor, scales: Tensor) -> Tensor:
    """The nearest multiples; a piece whose scale is zero has only zeros, or nearly."""
    return (pieces / torch.where(scales == 0, 1.0, scales).unsqueeze(-1)).round_()
