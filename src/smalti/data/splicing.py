"""New sentences from old ones: the beginning of one and the end of another that meet in two words.

A model that learns from what a teacher makes of sentences can learn from any sentences. Where
there are only a few thousand, these are further ones of the same kind: both halves are real,
and any three words in a row stand so in one of the two.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

from smalti.errors import DataError, require

# How many words the two sentences share where they meet.
SHARED = 2
# How often to try for each that is made: most tries give a sentence that is known already
# where texts are few, and hardly any where they are many.
TRIES = 50
# Tries are allowed as if so many had been made before the first.
FIRST = 1000
# A sentence's number, and that of a word in it.
_Place = tuple[int, int]


def splice(texts: Sequence[str], number: int, seed: int = 0) -> list[str]:
    """So many sentences that are not among the texts, each once.

    None is longer than the longer of its two sentences, or shorter than the shorter.

    Args:
        texts: Sentences with spaces between words.
        number: How many new ones to make.
        seed: Which.

    Example:
        >>> splice(["A man rides a horse.", "The girl rides a red bike."], 2)
        ['The girl rides a horse.', 'A man rides a red bike.']
    """
    require(number >= 1, f"expected to make at least one sentence, got {number}")
    sentences = [words for text in texts if len(words := text.split()) > SHARED]
    places = _meeting_places(sentences)
    made: dict[str, None] = {}
    known = {" ".join(words) for words in sentences}
    chance = random.Random(seed)
    tries = 0
    while sentences and tries < TRIES * (len(made) + FIRST):
        tries += 1
        first = chance.randrange(len(sentences))
        cut = chance.randrange(1, len(sentences[first]) - SHARED + 1)
        others = places[_meeting(sentences[first], cut)]
        second, resumed = others[chance.randrange(len(others))]
        words = sentences[first][:cut] + sentences[second][resumed:]
        lengths = sorted((len(sentences[first]), len(sentences[second])))
        text = " ".join(words)
        if lengths[0] <= len(words) <= lengths[1] and text not in known:
            made[text] = None
            if len(made) == number:
                return list(made)
    raise DataError(
        f"only {len(made):,} new sentences were made of {len(sentences):,}, of {number:,} that "
        "were asked for: ask for fewer, or give more that have words in common"
    )


def _meeting_places(sentences: Sequence[Sequence[str]]) -> dict[tuple[str, ...], list[_Place]]:
    """Where each pair of neighbouring words stands, but for beginnings of sentences."""
    found = defaultdict(list)
    for number, words in enumerate(sentences):
        for place in range(1, len(words) - SHARED + 1):
            found[_meeting(words, place)].append((number, place))
    return found


def _meeting(words: Sequence[str], place: int) -> tuple[str, ...]:
    return tuple(words[place : place + SHARED])
