"""Parts of words: every text has them and comes back from them."""

from __future__ import annotations

import pytest

pytest.importorskip("tokenizers")

from smalti.data import Subwords
from smalti.data.subwords import BEGIN, EOS, PAD, UNKNOWN
from smalti.errors import ArtifactError, ConfigError

TEXTS = ["A man rides a horse.", "Ein Mann reitet ein Pferd.", "Two men sing."] * 5


@pytest.fixture(scope="module")
def subwords() -> Subwords:
    return Subwords.fit(TEXTS, vocabulary=300)


def test_any_text_comes_back_but_for_its_spaces_and_unicode_form(subwords: Subwords) -> None:
    texts = [
        "A man rides a horse.",
        "unseen Wörter, «今日は» مرحبا 🙂",
        "a literal <eos> and <pad>",
        "e\u0301tude",
        "  two  spaces and\ta tab ",
        "",
    ]
    expected = [*texts[:3], "\u00e9tude", "two spaces and a tab", ""]
    assert subwords.decode(subwords.encode(texts)) == expected


def test_texts_end_with_the_mark_and_hold_no_other_special_number(subwords: Subwords) -> None:
    (ids,) = subwords.encode(["<pad> <begin> <unknown> <eos> 今"])
    assert ids[-1] == EOS
    assert not {PAD, EOS, UNKNOWN, BEGIN} & set(ids[:-1])
    assert max(ids) < len(subwords)
    assert subwords.encode([""]) == [[EOS]]


def test_frequent_words_become_one_part(subwords: Subwords) -> None:
    assert len(subwords.encode(["Mann"])[0]) == 2
    # The first word of a sentence has the same number as later ones.
    assert subwords.encode(["man man"])[0][:1] == subwords.encode(["man"])[0][:1]
    assert len(set(subwords.encode(["man man"])[0])) == 2


def test_what_is_decoded_is_one_line(subwords: Subwords) -> None:
    ids = list(range(4, len(subwords)))
    (text,) = subwords.decode([ids])
    assert len(text.splitlines()) == 1


def test_json_makes_an_equal_one_and_anything_else_is_refused(subwords: Subwords) -> None:
    again = Subwords(subwords.to_json())
    assert again.encode(TEXTS) == subwords.encode(TEXTS)
    assert again.fingerprint() == subwords.fingerprint()
    assert Subwords.fit(TEXTS, 300).fingerprint() == subwords.fingerprint()
    assert Subwords.fit(TEXTS, 280).fingerprint() != subwords.fingerprint()
    with pytest.raises(ArtifactError, match="can't be read"):
        Subwords("{}")


def test_a_vocabulary_must_hold_all_bytes() -> None:
    with pytest.raises(ConfigError, match="at least 260"):
        Subwords.fit(TEXTS, 259)
