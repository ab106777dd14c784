"""Grids of codes, and soft assignments to codewords, are checked here, where they come in."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from smalti.errors import DataError, ShapeError, require
from smalti.priors.level import Level
from smalti.quantizers.border import checked_codes

# How far the shares of a position may be from adding up to 1, rounding aside.
TOLERANCE = 1e-3


def checked_grid(codes: Tensor, level: Level) -> Tensor:
    """Codes ``(batch, height, width, num_codebooks)`` as int64, in range."""
    wanted = (*level.grid, level.num_codebooks)
    shape = tuple(getattr(codes, "shape", ()))
    require(
        len(shape) == 4 and shape[1:] == wanted,
        f"expected codes (batch, {', '.join(map(str, wanted))}), got {shape}",
        ShapeError,
    )
    return checked_codes(codes, level.code_sizes)


def checked_above(
    above: Sequence[Tensor], levels: Sequence[Level], batch: int
) -> tuple[Tensor, ...]:
    """The codes of the levels above, top first, a grid for each item of the batch."""
    require(
        len(above) == len(levels),
        f"expected the codes of {len(levels)} levels above, top first, got {len(above)}",
        ShapeError,
    )
    grids = tuple(checked_grid(codes, level) for codes, level in zip(above, levels, strict=True))
    for codes in grids:
        require(
            len(codes) == batch,
            f"expected {batch} grids of each level above, got {len(codes)}",
            ShapeError,
        )
    return grids


def checked_assignments(assignments: Tensor, batch: int, level: Level) -> Tensor:
    """Shares ``(batch, height, width, num_codebooks, size)`` that add up to 1.

    ``size`` is that of the largest codebook; smaller ones have zeros at the end.
    """
    wanted = (batch, *level.grid, level.num_codebooks, max(level.code_sizes))
    require(
        isinstance(assignments, Tensor)
        and assignments.is_floating_point()
        and tuple(assignments.shape) == wanted,
        f"expected real-valued assignments {wanted}, got "
        f"{getattr(assignments, 'dtype', type(assignments).__name__)} "
        f"{tuple(getattr(assignments, 'shape', ()))}",
        ShapeError,
    )
    if torch.compiler.is_compiling() or not assignments.numel():
        return assignments
    shares = assignments.detach()
    own = torch.stack(
        [shares[..., book, :size].float().sum(-1) for book, size in enumerate(level.code_sizes)]
    )
    # Comparisons with NaN are false.
    require(
        bool((shares >= 0).all()) and bool(((own - 1).abs() <= TOLERANCE).all()),
        "expected assignments of at least 0 that add up to 1 over the codewords of each codebook, "
        f"got sums from {float(own.min()):.4g} to {float(own.max()):.4g} and a least of "
        f"{float(shares.min()):.4g}",
        DataError,
    )
    return assignments
