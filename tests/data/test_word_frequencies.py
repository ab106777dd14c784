"""General counts follow wordfreq, with words as they stand within a sentence."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from scipy.stats import spearmanr

from smalti.data import TokenCounts, count_tokens, general_counts, read_texts, smoothed
from smalti.data.word_frequencies import _shares
from smalti.errors import ConfigError, DataError, MissingExtraError


def counts_of(*numbers: int, tokenizer: str = "same") -> TokenCounts:
    return TokenCounts(torch.tensor(numbers), 1, (), tokenizer)


@pytest.fixture(scope="module")
def prior(minilm: Any) -> TokenCounts:
    pytest.importorskip("wordfreq")
    return general_counts(minilm, rows=30_522, words=10**8)


@pytest.mark.slow
def test_a_word_counts_as_often_as_wordfreq_says(minilm: Any, prior: TokenCounts) -> None:
    wordfreq = pytest.importorskip("wordfreq")
    for word in ("the", "people", "government", "yesterday"):
        expected = wordfreq.word_frequency(word, "en") * 10**8
        count = int(prior.counts[minilm.get_vocab()[word]])
        # Longer words that begin with it come on top, such as "yesterday's".
        assert expected * 0.99 <= count <= expected * 1.1
    assert prior.sources == ("general word frequencies of en",)
    assert prior.counts[minilm.get_vocab()["[CLS]"]] == 10**8 // 20


@pytest.mark.slow
def test_words_have_the_tokens_of_a_word_within_a_sentence(byte_pairs: Any) -> None:
    pytest.importorskip("wordfreq")
    counts = general_counts(byte_pairs, rows=400).counts
    vocabulary = byte_pairs.get_vocab()
    # The space before a word is part of its token: \u0120 in this alphabet.
    within, alone = counts[vocabulary["\u0120the"]], counts[vocabulary["the"]]
    assert within > 10 * alone
    assert counts[vocabulary["\u0120dog"]] > 0
    assert counts[vocabulary["The"]] > 0


def test_shares_keep_the_sum_of_frequencies() -> None:
    wordfreq = pytest.importorskip("wordfreq")
    within, first = _shares(["en"], capitals=True)
    english = {"the", "london", "of"}
    for word in english:
        share = within[f" {word}"] + within[f" {word.capitalize()}"]
        assert share == pytest.approx(wordfreq.word_frequency(word, "en"), rel=0.01)
    assert first["London"] == pytest.approx(wordfreq.word_frequency("london", "en") / 20, rel=0.01)
    assert within[" 1990"] == pytest.approx(wordfreq.word_frequency("1990", "en"))


def test_unseen_rows_are_ranked_by_the_prior() -> None:
    found = smoothed(counts_of(90, 10, 0, 0), counts_of(0, 0, 30, 10), strength=0.2)
    # By hand: 0.2 * 100 tokens are spread as 30 to 10.
    torch.testing.assert_close(found, torch.tensor([90.0, 10.0, 15.0, 5.0], dtype=torch.float64))


def test_a_prior_of_another_table_is_refused() -> None:
    with pytest.raises(DataError, match="same tokenizer and table"):
        smoothed(counts_of(1, 2), counts_of(1, 2, 3))
    with pytest.raises(DataError, match="same tokenizer and table"):
        smoothed(counts_of(1, 2), counts_of(1, 2, tokenizer="other"))
    with pytest.raises(ConfigError, match="strength must be >= 0"):
        smoothed(counts_of(1), counts_of(1), strength=-1)


def test_a_missing_package_is_named(byte_pairs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wordfreq", None)
    with pytest.raises(MissingExtraError, match="need the package wordfreq"):
        general_counts(byte_pairs, rows=400)


def test_unknown_languages_and_small_tables_are_refused(byte_pairs: Any) -> None:
    pytest.importorskip("wordfreq")
    with pytest.raises(ConfigError, match="no word frequencies of 'xx'; the languages are: ar, "):
        general_counts(byte_pairs, rows=400, languages=("xx",))
    with pytest.raises(ConfigError, match="at least one language"):
        general_counts(byte_pairs, rows=400, languages=())
    with pytest.raises(DataError, match="below the table's 30 rows"):
        general_counts(byte_pairs, rows=30)


@pytest.mark.data
@pytest.mark.slow
def test_general_counts_rank_the_tokens_of_real_text(
    minilm: Any, prior: TokenCounts, public: Callable[[str], Path]
) -> None:
    text = count_tokens(read_texts(public("text/agnews/test.tsv")), minilm, rows=30_522).counts
    assert spearmanr(text, prior.counts).statistic > 0.6
    commonest = prior.counts.argsort(descending=True)[:5000]
    assert text[commonest].sum() > 0.8 * text.sum()
