"""Codes packed into as few bits as they need, and back.

Row after row, codebook after codebook, each code takes ceil(log2 size) bits, lowest bit
first; nothing lies between them, and the last byte is filled up with zeros.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral

import numpy as np
import torch
from torch import Tensor

from smalti.errors import DataError, ShapeError, require

# Rows handled at a time, a multiple of 8 so that every block begins at a whole byte.
BLOCK_ROWS = 1 << 14
# Codes are 64-bit integers.
LARGEST = 2**63 - 1


def bits_of(size: int) -> int:
    """How many bits a code below ``size`` takes.

    Example:
        >>> [bits_of(size) for size in (2, 3, 256, 257)]
        [1, 2, 8, 9]
    """
    return max(1, (size - 1).bit_length())


def checked_sizes(code_sizes: Sequence[int]) -> tuple[int, ...]:
    """Sizes of codebooks as a tuple of whole numbers of at least 1."""
    sizes = tuple(code_sizes) if isinstance(code_sizes, Iterable) else (code_sizes,)
    require(
        isinstance(code_sizes, Iterable)
        and all(isinstance(size, Integral) and 0 < size <= LARGEST for size in sizes),
        f"expected the sizes of the codebooks, such as (256, 256), got {code_sizes!r}",
        ShapeError,
    )
    return tuple(int(size) for size in sizes)


def packed_bytes(rows: int, code_sizes: Sequence[int]) -> int:
    """The length of ``rows`` packed rows."""
    return -(-rows * sum(bits_of(size) for size in code_sizes) // 8)


def pack(codes: Tensor, code_sizes: Sequence[int]) -> Tensor:
    """Pack codes ``(rows, num_codebooks)`` into a uint8 tensor.

    Example:
        >>> pack(torch.tensor([[3, 1], [0, 7]]), (4, 8))
        tensor([135,   3], dtype=torch.uint8)
    """
    require(
        codes.dim() == 2 and codes.shape[1] == len(code_sizes) and not codes.is_floating_point(),
        f"expected whole numbers (rows, {len(code_sizes)}), got {codes.dtype} {tuple(codes.shape)}",
        ShapeError,
    )
    numbers = codes.detach().cpu().numpy().astype(np.int64)
    for book, size in enumerate(code_sizes):
        column = numbers[:, book]
        require(
            not len(column) or (column.min() >= 0 and column.max() < size),
            f"expected codes of codebook {book} in 0..{size - 1}, got "
            f"{column.min(initial=0)}..{column.max(initial=0)}",
            DataError,
        )
    widths = [bits_of(size) for size in code_sizes]
    if all(width == 8 for width in widths):
        return torch.from_numpy(numbers.astype(np.uint8).reshape(-1))
    books, places = _layout(widths)
    blocks = [
        np.packbits((block[:, books] >> places) & 1, bitorder="little")
        for block in _blocks(numbers)
    ]
    return torch.from_numpy(np.concatenate(blocks) if blocks else np.empty(0, np.uint8))


def unpack(packed: Tensor, rows: int, code_sizes: Sequence[int]) -> Tensor:
    """The codes ``(rows, num_codebooks)`` int64 that :func:`pack` packed."""
    code_sizes = checked_sizes(code_sizes)
    require(
        isinstance(rows, int) and rows >= 0,
        f"rows must be a whole number >= 0, got {rows!r}",
        ShapeError,
    )
    expected = packed_bytes(rows, code_sizes)
    require(
        packed.dtype == torch.uint8 and packed.dim() == 1 and len(packed) == expected,
        f"expected {expected} bytes (uint8) for {rows} rows of codes below {tuple(code_sizes)}, "
        f"got {packed.dtype} {tuple(packed.shape)}",
        ShapeError,
    )
    numbers = packed.detach().cpu().numpy()
    widths = [bits_of(size) for size in code_sizes]
    if all(width == 8 for width in widths):
        codes = numbers.reshape(rows, len(widths)).astype(np.int64)
    else:
        codes = _unpack_bits(numbers, rows, widths)
    for book, size in enumerate(code_sizes):
        highest = codes[:, book].max(initial=0)
        require(
            highest < size,
            f"expected codes of codebook {book} in 0..{size - 1}, got {highest}: damaged bytes",
            DataError,
        )
    return torch.from_numpy(codes)


def take(packed: Tensor, rows: Tensor, code_sizes: Sequence[int]) -> Tensor:
    """The codes ``(n, num_codebooks)`` int64 of some rows ``(n,)``, without unpacking all.

    Unlike :func:`unpack` it checks nothing, runs on any device and can be compiled.

    Example:
        >>> take(pack(torch.tensor([[3, 1], [0, 7]]), (4, 8)), torch.tensor([1]), (4, 8))
        tensor([[0, 7]])
    """
    widths = [bits_of(size) for size in code_sizes]
    if all(width == 8 for width in widths):
        return packed.view(-1, len(widths)).index_select(0, rows).long()
    offsets = torch.tensor([0, *np.cumsum(widths)[:-1].tolist()], device=packed.device)
    first = rows.unsqueeze(-1) * sum(widths) + offsets
    # A code begins at any bit: one byte more than its own width may hold a part of it.
    byte, shift = first >> 3, first & 7
    value = packed[byte].long()
    for step in range(1, -(-(max(widths) + 7) // 8)):
        value |= packed[(byte + step).clamp_(max=len(packed) - 1)].long() << (8 * step)
    masks = torch.tensor([(1 << width) - 1 for width in widths], device=packed.device)
    return (value >> shift) & masks


def _unpack_bits(numbers: np.ndarray, rows: int, widths: list[int]) -> np.ndarray:
    books, places = _layout(widths)
    starts = np.cumsum([0, *widths[:-1]])
    codes = np.empty((rows, len(widths)), np.int64)
    for first in range(0, rows, BLOCK_ROWS):
        count = min(BLOCK_ROWS, rows - first)
        begin = first * len(books) // 8
        piece = numbers[begin : begin + -(-count * len(books) // 8)]
        bits = np.unpackbits(piece, count=count * len(books), bitorder="little")
        weighted = bits.reshape(count, len(books)).astype(np.int64) << places
        codes[first : first + count] = np.add.reduceat(weighted, starts, axis=1)
    return codes


def _layout(widths: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """For each bit of a row: the codebook it belongs to and its place in the code."""
    books = np.repeat(np.arange(len(widths)), widths)
    places = np.concatenate([np.arange(width) for width in widths])
    return books, places


def _blocks(numbers: np.ndarray) -> list[np.ndarray]:
    return [numbers[first : first + BLOCK_ROWS] for first in range(0, len(numbers), BLOCK_ROWS)]
