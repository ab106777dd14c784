"""Texts longer than a model has learned to read, cut where a reader would pause."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

# Where to cut, the best places first: after sentences (those with signs as wide as Chinese
# letters too), after clauses, between words.
PLACES = tuple(map(re.compile, (r"(?<=[.!?\u3002\uff01\uff1f])\s+", r"(?<=[,;:])\s+", r"\s+")))


def pieces(text: str, most: int, tokens_of: Callable[[Sequence[str]], Sequence[int]]) -> list[str]:
    """A text in parts of at most ``most`` tokens, which joined by spaces are the text again.

    Only a word without spaces that is too long itself is cut inside.

    Args:
        text: In one line.
        most: Tokens of a part.
        tokens_of: How many tokens each of some texts has.

    Example:
        >>> words = lambda texts: [len(text.split()) for text in texts]
        >>> pieces("One two. Three, four five six.", 3, words)
        ['One two.', 'Three,', 'four five six.']
    """
    return _cut(text, most, tokens_of, 0)


def _cut(
    text: str, most: int, tokens_of: Callable[[Sequence[str]], Sequence[int]], place: int
) -> list[str]:
    if tokens_of([text])[0] <= most or len(text) == 1:
        return [text]
    if place == len(PLACES):
        # A token has at least a byte; a letter up to four.
        width = max(1, most // 4)
        return [text[begin : begin + width] for begin in range(0, len(text), width)]
    parts = [part for part in PLACES[place].split(text) if part]
    found: list[str] = []
    for part, size in _joined(parts, most, tokens_of(parts)):
        found += [part] if size <= most else _cut(part, most, tokens_of, place + 1)
    return found


def _joined(parts: Sequence[str], most: int, sizes: Sequence[int]) -> list[tuple[str, int]]:
    """Neighbours put together again as long as they are not too long in sum."""
    made: list[tuple[str, int]] = []
    for part, size in zip(parts, sizes, strict=True):
        if made and made[-1][1] + size <= most:
            before, tokens = made.pop()
            made.append((f"{before} {part}", tokens + size))
        else:
            made.append((part, size))
    return made
