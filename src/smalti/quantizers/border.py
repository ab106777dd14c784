"""What comes in is checked once, here: shapes, types, values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from smalti.errors import DataError, ShapeError, require

# Squares of larger numbers do not fit into float32.
LARGEST = 1e18


def checked_vectors(x: Tensor, mask: Tensor | None, dim: int) -> Tensor:
    """``x`` as float32 with padding set to zero, or an error that says what is wrong."""
    require(
        isinstance(x, Tensor) and x.is_floating_point(),
        f"expected a tensor of real numbers, got {getattr(x, 'dtype', type(x).__name__)}; "
        "convert it with .float()",
        ShapeError,
    )
    require(
        x.dim() >= 1 and x.shape[-1] == dim,
        f"expected (..., {dim}), got {tuple(x.shape)}; the last axis is the vector "
        "(for images with channels first use ChannelsFirst)",
        ShapeError,
    )
    if mask is not None:
        require(
            isinstance(mask, Tensor) and mask.dtype == torch.bool and mask.shape == x.shape[:-1],
            f"expected a tensor of bool {tuple(x.shape[:-1])} as mask, got "
            f"{type(mask).__name__} {getattr(mask, 'dtype', '')} "
            f"{tuple(getattr(mask, 'shape', ()))}",
            ShapeError,
        )
        x = x.masked_fill(~mask.unsqueeze(-1), 0.0)
    x = x.float()
    if not torch.compiler.is_compiling():
        _require_usable(x)
    return x


def checked_codes(codes: Tensor, code_sizes: tuple[int, ...]) -> Tensor:
    """``codes`` as int64, or an error that says what is wrong."""
    require(
        isinstance(codes, Tensor) and codes.dtype in WHOLE_NUMBERS and codes.dim() >= 1,
        f"expected a tensor of whole numbers, got {getattr(codes, 'dtype', type(codes))}",
        ShapeError,
    )
    require(
        codes.shape[-1] == len(code_sizes),
        f"expected codes (..., {len(code_sizes)}), got {tuple(codes.shape)}",
        ShapeError,
    )
    codes = codes.long()
    if not torch.compiler.is_compiling() and codes.numel():
        lowest, highest = codes.reshape(-1, len(code_sizes)).aminmax(dim=0)
        for book, size in enumerate(code_sizes):
            low, high = int(lowest[book]), int(highest[book])
            require(
                low >= 0 and high < size,
                f"expected codes of codebook {book} in 0..{size - 1}, got {low}..{high}",
                DataError,
            )
    return codes


def as_stream(batches: Any) -> Iterable[Tensor]:
    """One tensor as a stream of one, a stream as it is."""
    if isinstance(batches, Tensor):
        return [batches]
    require(
        isinstance(batches, Iterable),
        f"expected a tensor or an iterable of tensors, got {type(batches).__name__}",
        ShapeError,
    )
    stream: Iterable[Tensor] = batches
    return stream


def _require_usable(x: Tensor) -> None:
    if x.numel() == 0:
        return
    lowest, highest = x.detach().aminmax()
    # Comparisons with NaN are false, so this one pass finds everything.
    if bool((lowest >= -LARGEST) & (highest <= LARGEST)):
        return
    bad = int((~x.detach().isfinite()).sum())
    what = f"{bad} of {x.numel()} numbers NaN or infinite" if bad else f"{float(x.abs().max()):.3g}"
    raise DataError(
        f"expected finite vectors with numbers up to {LARGEST:.0e} in size, got {what}; nothing "
        "was learned from this batch: look for the fault before the quantizer"
    )


WHOLE_NUMBERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
