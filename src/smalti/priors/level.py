"""What a level of codes looks like: its grid, and how many codewords each codebook has."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from smalti.errors import require
from smalti.quantizers.settings import count


class Level(NamedTuple):
    """A grid of codes as a prior sees it; codes are ``(batch, height, width, num_codebooks)``."""

    grid: tuple[int, int]
    """Height and width."""
    code_sizes: tuple[int, ...]
    """How many codewords each codebook has; they may differ."""

    @property
    def num_codebooks(self) -> int:
        """How many codes each place of the grid has."""
        return len(self.code_sizes)

    @property
    def num_codes(self) -> int:
        """How many codes a whole grid has."""
        return math.prod(self.grid) * self.num_codebooks

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where each codebook begins when all are put one after the other."""
        return tuple(itertools.accumulate(self.code_sizes, initial=0))[:-1]


def as_level(value: Any) -> Level:
    """A level from its plain form: ``[grid, code_sizes]``, or a mapping with these keys.

    Example:
        >>> as_level([[8, 8], [256, 256]])
        Level(grid=(8, 8), code_sizes=(256, 256))
    """
    parts: Any = value
    if isinstance(value, Mapping):
        parts = [value.get("grid"), value.get("code_sizes")]
    listed = isinstance(parts, Sequence) and len(parts) == 2
    require(
        listed and all(isinstance(part, Sequence) and not isinstance(part, str) for part in parts),
        f"expected a level as (grid, code_sizes), such as ((8, 8), (256,)), got {value!r}",
    )
    grid, sizes = parts
    require(len(grid) == 2, f"expected a grid (height, width), got {grid!r}")
    require(len(sizes) > 0, "a level without codebooks has nothing to predict")
    height, width = (count("the height and width of a grid", side) for side in grid)
    return Level(
        (height, width), tuple(count("the number of codewords", size, least=2) for size in sizes)
    )
