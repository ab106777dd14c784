"""What an analysis found: a question, the answer in a sentence, its numbers, its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from smalti.analysis.figures import Figure


@dataclass(frozen=True)
class Finding:
    """The result of an analysis.

    Args:
        name: One word for programs, such as ``"code_distribution"``.
        title: The question that was asked.
        caption: The answer: a sentence with the numbers in it.
        numbers: Plain data, ready for JSON: mappings, lists, numbers, text and None.
        figures: What can be drawn.
    """

    name: str
    title: str
    caption: str
    numbers: Mapping[str, Any]
    figures: Sequence[Figure] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "name": self.name,
            "title": self.title,
            "caption": self.caption,
            "numbers": dict(self.numbers),
            "figures": [figure.as_dict() for figure in self.figures],
        }

    def __str__(self) -> str:
        return f"{self.title} {self.caption}"
