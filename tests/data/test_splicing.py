"""New sentences from two old ones: real halves, no repetition, the same for the same seed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smalti.data import splice
from smalti.errors import DataError

TEXTS = ["a b c d", "x b c y", "k l b c z"]


def halves(text: str) -> bool:
    """Whether a beginning of one text and an end of another make it, two words in common."""
    words = text.split()
    return any(
        one.split()[: cut + 2] == words[: cut + 2]
        and len(words) - cut <= len(other.split())
        and other.split()[-(len(words) - cut) :] == words[cut:]
        for one in TEXTS
        for other in TEXTS
        for cut in range(1, len(words) - 1)
    )


def test_every_sentence_is_a_beginning_and_an_end_that_share_two_words() -> None:
    # Beginnings a, x, k l and ends d, y, z: nine, of which three are there. "k l b c d" and
    # "k l b c y" have five words like "k l b c z", "a b c z" and "x b c z" four like the others.
    made = splice(TEXTS, 6)
    assert sorted(made) == ["a b c y", "a b c z", "k l b c d", "k l b c y", "x b c d", "x b c z"]
    assert all(map(halves, made))


@given(st.integers(0, 2**63 - 1))
def test_none_is_there_twice_or_known(seed: int) -> None:
    made = splice([*TEXTS, *TEXTS], 6, seed)
    assert len(set(made)) == 6
    assert not set(made) & set(TEXTS)


def test_the_seed_says_which() -> None:
    texts = [f"{first} b c {last}" for first, last in zip("aeiou", "mnpqr", strict=True)]
    assert splice(texts, 5, seed=1) == splice(texts, 5, seed=1)
    assert len({tuple(splice(texts, 5, seed=seed)) for seed in range(8)}) > 1


def test_lengths_stay_between_those_of_the_two_sentences() -> None:
    # A long beginning and a long end would make twelve words, short ones four.
    texts = ["a a1 a2 a3 a4 m n z", "y m n b1 b2 b3 b4 b"]
    with pytest.raises(DataError, match="only 0 new sentences were made of 2, of 1"):
        splice(texts, 1)


@pytest.mark.parametrize("texts", [[], ["", "  "], ["one two", "three"], ["no word in common"]])
def test_texts_that_do_not_meet_are_an_error(texts: list[str]) -> None:
    with pytest.raises(DataError, match="give more that have words in common"):
        splice(texts, 3)
