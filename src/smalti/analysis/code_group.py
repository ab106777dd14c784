"""Codes that were chosen from the same codebooks, with a name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from smalti.codes.packing import checked_sizes
from smalti.errors import DataError, ShapeError, require


@dataclass(frozen=True, eq=False)
class CodeGroup:
    """Codes to look at.

    Args:
        name: Which they are, such as a level of an image model or a tier of a table.
        codes: ``(n, ..., num_codebooks)`` whole numbers.
        code_sizes: How many codewords each codebook has.
    """

    name: str
    codes: Tensor
    code_sizes: Sequence[int]

    def __post_init__(self) -> None:
        sizes = checked_sizes(self.code_sizes)
        require(
            self.codes.dim() >= 2
            and self.codes.shape[-1] == len(sizes)
            and not self.codes.is_floating_point(),
            f"expected codes (n, ..., {len(sizes)}) of whole numbers, got {self.codes.dtype} "
            f"{tuple(self.codes.shape)}",
            ShapeError,
        )
        require(self.codes.numel() > 0, "expected at least one code, got none", DataError)


def named(groups: Sequence[CodeGroup], group: CodeGroup) -> str:
    """What to put behind a figure's title: the group's name, where there are several."""
    return f", {group.name}" if len(groups) > 1 else ""
