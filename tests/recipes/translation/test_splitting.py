"""Long texts in parts: nothing is lost, and cuts are where a reader would pause."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from smalti.recipes.translation.splitting import pieces


def words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def letters(texts: Sequence[str]) -> list[int]:
    return [len(text.replace(" ", "")) for text in texts]


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("a b c", 3, ["a b c"]),
        ("a b. c d.", 3, ["a b.", "c d."]),
        ("a. b. c. d e f.", 3, ["a. b. c.", "d e f."]),
        ("a b, c d e", 3, ["a b,", "c d e"]),
        ("a b c d e", 2, ["a b", "c d", "e"]),
        ("one. two three four five. six.", 2, ["one.", "two three", "four five.", "six."]),
    ],
)
def test_cuts_are_at_sentences_then_clauses_then_words(
    text: str, most: int, expected: list[str]
) -> None:
    assert pieces(text, most, words) == expected


def test_ten_thousand_words_come_in_parts_that_are_the_text_again() -> None:
    text = " ".join(f"w{number}" for number in range(10_000))
    found = pieces(text, 50, words)
    assert len(found) == 200
    assert " ".join(found) == text


def test_a_word_without_end_is_cut_inside() -> None:
    found = pieces("ab " + "x" * 1000 + " c", 40, letters)
    assert max(letters(found)) <= 40
    assert "".join(found).replace(" ", "") == "ab" + "x" * 1000 + "c"
