"""Which columns of a table hold text and which the label: by well-known names, or by content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# Names as public sets have them, in any case of letters; the first group that is there counts.
TEXT_COLUMNS = (
    ("sentence1", "sentence2"),
    ("question1", "question2"),
    ("#1 string", "#2 string"),
    ("premise", "hypothesis"),
    ("question", "sentence"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    ("sentence_a", "sentence_b"),
    ("title", "description"),
    ("query", "passage"),
    ("text",),
    ("sentence",),
    ("content",),
    ("document",),
    ("review",),
    ("body",),
    ("article",),
    ("question",),
    ("tweet",),
    ("description",),
    ("title",),
)
SCORE_COLUMNS = ("score", "similarity", "similarity_score", "relatedness_score")
CLASS_COLUMNS = (
    "gold_label",
    "label",
    "labels",
    "quality",
    "is_duplicate",
    "class",
    "class index",
    "category",
    "coarse_label",
    "label-coarse",
    "intent",
    "sentiment",
    "target",
    "stars",
)
KNOWN = {name for group in TEXT_COLUMNS for name in group} | {*SCORE_COLUMNS, *CLASS_COLUMNS}
# A value of so many words is taken for text, not for a name, a number or a label.
FEW_WORDS = 3


def is_header(first: Sequence[str], others: Sequence[Sequence[Any]]) -> bool:
    """Whether the first row names the columns of the others.

    It does when it has a well-known name, or when it has neither numbers nor text of several
    words above a column of such text; and never with a cell that is empty or there twice.
    """
    if not all(cell.strip() for cell in first) or len(set(first)) < len(first):
        return False
    if any(cell.strip().casefold() in KNOWN for cell in first):
        return True
    plain = not any(_is_number(cell) or _is_text(cell) for cell in first)
    return plain and bool(texts_by_content(others))


def known_texts(names: Sequence[str]) -> tuple[str, ...]:
    """The well-known text columns among these, if any."""
    found = {name.strip().casefold(): name for name in reversed(names)}
    for group in TEXT_COLUMNS:
        if all(name in found for name in group):
            return tuple(found[name] for name in group)
    return ()


def texts_by_content(rows: Sequence[Sequence[Any]]) -> tuple[int, ...]:
    """The places of columns in which at least half of the rows have several words."""
    columns = list(zip(*rows, strict=False))
    return tuple(
        place
        for place, values in enumerate(columns)
        if 2 * sum(_is_text(value) for value in values) >= len(values)
    )


def known_label(names: Sequence[str]) -> str | None:
    """The well-known column of scores or classes among these, if any."""
    found = {name.strip().casefold(): name for name in reversed(names)}
    return next((found[name] for name in SCORE_COLUMNS + CLASS_COLUMNS if name in found), None)


def label_by_content(rows: Sequence[Sequence[Any]], texts: Sequence[int]) -> int | None:
    """The place of the first column of numbers, or of the only one that is not text."""
    columns = list(zip(*rows, strict=False))
    others = [place for place in range(len(columns)) if place not in texts]
    numbers = [place for place in others if all(_is_number(value) for value in columns[place])]
    if numbers:
        return numbers[0]
    return others[0] if len(others) == 1 else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value.split(maxsplit=FEW_WORDS)) >= FEW_WORDS


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
