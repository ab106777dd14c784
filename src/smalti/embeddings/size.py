"""Bytes of a table, by what they hold."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """Bytes of a table's saved tensors, by what they hold."""

    codes: int = 0
    codebooks: int = 0
    kept: int = 0
    other: int = 0

    @property
    def total(self) -> int:
        """All bytes together."""
        return self.codes + self.codebooks + self.kept + self.other

    def __add__(self, more: Size) -> Size:
        return Size(
            self.codes + more.codes,
            self.codebooks + more.codebooks,
            self.kept + more.kept,
            self.other + more.other,
        )

    def as_dict(self) -> dict[str, int]:
        """Plain data, the total included."""
        parts = {"codes": self.codes, "codebooks": self.codebooks, "kept": self.kept}
        return {**parts, "other": self.other, "total": self.total}
