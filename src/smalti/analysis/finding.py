"""What an analysis found: a question, its numbers, and the answer in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Finding:
    """The result of an analysis.

    Args:
        question: What was asked.
        numbers: Plain data, ready for JSON: mappings, lists, numbers, text and None.
        answer: One sentence.
    """

    question: str
    numbers: Mapping[str, Any]
    answer: str

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.question} {self.answer}"
