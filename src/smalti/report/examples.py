"""Which words to show as examples: those asked for, or some that people know."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

MOST = 16
# Words of a few kinds, so that one can see whether codes tell kinds apart.
FAMILIAR = (
    "monday", "tuesday", "friday", "sunday", "london", "paris", "berlin", "toronto",
    "mother", "brother", "guitar", "piano", "copper", "silver", "twelve", "thirteen",
)  # fmt: skip
# How tokenizers mark the beginning or the inside of words.
MARKS = re.compile(r"^(?:##|[▁ĠĊ]+)|</w>$")
WORD = re.compile(r"[^\W\d_]{4,14}")
# With fewer familiar words among the rows, their commonest words are taken.
FEW = 8


def example_rows(
    words: Sequence[str], rows: Sequence[int], wanted: Sequence[str] = ()
) -> list[int]:
    """Some rows to show.

    Args:
        words: What each row of the table is called.
        rows: The rows to choose from, the commonest first.
        wanted: Words that were asked for.
    """
    if wanted:
        return list(_named(words, rows, wanted))
    familiar = list(_named(words, rows, FAMILIAR))
    if len(familiar) >= FEW:
        return familiar[:MOST]
    common = [row for row in rows if WORD.fullmatch(words[row])]
    return (common or list(rows))[:MOST]


def _named(words: Sequence[str], rows: Sequence[int], wanted: Sequence[str]) -> Iterator[int]:
    place: dict[str, int] = {}
    for row in rows:
        # A word as it stands before one without its mark or its capital letters.
        for name in (words[row], MARKS.sub("", words[row]).lower()):
            place.setdefault(name, row)
    seen: set[int] = set()
    for word in wanted:
        found = place.get(word, place.get(word.lower()))
        if found is not None and found not in seen:
            seen.add(found)
            yield found
