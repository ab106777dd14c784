"""Tokens as words that can be shown: nothing invisible, nothing endless."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Control characters, marks that turn the direction of text, and halves of characters.
UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U000e0000-\U000e0fff]"
)
LONGEST = 64


def visible(token: str) -> str:
    r"""A token with signs in the place of what can't be seen, cut where it is too long.

    Example:
        >>> visible("a\u202eb"), visible("\x00"), visible("x" * 10_000)[-23:]
        ('a⟨202e⟩b', '⟨0⟩', 'xxx… (10000 characters)')
    """
    many = len(token)
    cut = token if many <= LONGEST else token[:LONGEST]
    if UNSEEN.search(cut):
        cut = UNSEEN.sub(lambda found: f"⟨{ord(found[0]):x}⟩", cut)
    return cut if many <= LONGEST else f"{cut}… ({many} characters)"


def all_visible(tokens: Sequence[str | None], rows: int) -> list[str]:
    """A word for each row of a table; rows without a token are called by their number."""
    named = [visible(token) if token else f"⟨row {row}⟩" for row, token in enumerate(tokens[:rows])]
    return named + [f"⟨row {row}⟩" for row in range(len(named), rows)]
