"""Token counts without any text: how often words are used in general.

Reference:
    Speer, "rspeer/wordfreq: v3.0", Zenodo 2022 (frequencies of words in many languages).

Differs from the paper:
    Words become the tokens they are within a sentence. wordfreq has neither capitals nor
    punctuation, and lumps numbers of as many digits together: a share of each word is taken as
    capitalised, marks get rough shares, numbers of up to four digits their own.
"""

from __future__ import annotations

import importlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from smalti.data.counts import TokenCounts
from smalti.data.tokens import encode, fingerprint
from smalti.errors import ConfigError, DataError, MissingExtraError, require
from smalti.progress import progress_bar

# Words follow this one, so that they get the tokens of a word within a sentence.
CARRIER = "a"
# Between a tenth (captions) and a fifth (news) of English words begin with a capital.
CAPITALISED = 0.15
# Words of a text: how often the tokens around a text count, and words as its first.
WORDS_A_TEXT = 20
# Rarer words than this are taken as neither capitalised nor first.
COMMON = 1e-6
# Marks per word as they stand behind a word, with or without a space: rounded means over
# captions, news, questions and encyclopedia.
MARKS = {
    0.06: (".",),
    0.04: (",",),
    0.01: ("-",),
    0.003: (' "', '"', '."', ',"', " (", ")", "?"),
    0.002: (":", " -", "'", " '", "\u2019", " \u201c", "\u201d"),
    0.001: (";", "!", "/", " $", "%", " \u2013"),
    0.0005: (" &", " \u2014", "..."),
    0.0002: (" [", "]", " #", " =", " +", " *", " <", ">", "@", "_", "|", "~", " £", " €", "\\"),
}
UNSPACED = {"ja", "zh"}
# wordfreq counts numbers of as many digits as one; of these kinds each gets its own share.
LUMPED = re.compile("[0-9]{2}")
NUMBERS = ((2, ""), (3, ""), (4, ""), (2, "th"), (2, "s"), (4, "s"))


def general_counts(
    tokenizer: Any,
    rows: int,
    *,
    languages: Sequence[str] = ("en",),
    words: int = 10**9,
    progress: bool | None = None,
) -> TokenCounts:
    """Expected token counts of general text.

    Args:
        tokenizer: The model's, of transformers or of tokenizers.
        rows: Rows of the model's table.
        languages: Codes of wordfreq's languages, each with the same share.
        words: Words of the text that the counts are scaled to.
        progress: Whether to draw a bar on stderr; None does so on a terminal.
    """
    require(words > 0, f"words must be > 0, got {words}")
    require(len(languages) > 0, "expected at least one language, got none")
    within, first = _shares(languages, capitals=_ids("a", tokenizer) != _ids("A", tokenizer))
    repeated = _ids(f"{CARRIER} {CARRIER}", tokenizer)
    if repeated == 2 * _ids(CARRIER, tokenizer):
        first = {}  # A word has the same tokens wherever it stands.
    with progress_bar("counting", "words", len(within) + len(first), progress) as advance:
        counts = _spread(within, CARRIER, tokenizer, rows, advance)
        counts += _spread(first, "", tokenizer, rows, advance)
    around = _ids("", tokenizer, special=True)
    counts += np.bincount(around, minlength=rows) / WORDS_A_TEXT
    return TokenCounts(
        counts=torch.from_numpy(np.rint(counts * words).astype(np.int64)),
        texts=max(1, words // WORDS_A_TEXT),
        sources=(f"general word frequencies of {', '.join(languages)}",),
        tokenizer=fingerprint(tokenizer),
    )


def smoothed(counts: TokenCounts, prior: TokenCounts, strength: float = 0.1) -> Tensor:
    """Counts ``(rows,)`` float64 with a share of a prior's, so that unseen rows differ too.

    Args:
        counts: Of the text at hand.
        prior: Such as :func:`general_counts`, of the same tokenizer and rows.
        strength: The prior's weight, as a share of the text's tokens.
    """
    require(strength >= 0, f"strength must be >= 0, got {strength}")
    require(
        counts.tokenizer == prior.tokenizer and counts.rows == prior.rows,
        "expected counts of the same tokenizer and table, got "
        f"{counts.rows} rows of {counts.tokenizer[:8]} and "
        f"{prior.rows} of {prior.tokenizer[:8]}",
        DataError,
    )
    scale = strength * counts.tokens / max(1, prior.tokens)
    return counts.counts.double() + scale * prior.counts.double()


def _shares(languages: Sequence[str], capitals: bool) -> tuple[dict[str, float], dict[str, float]]:
    """What stands behind a word and what begins a text, and how often; a word of text is 1."""
    marks = {mark: share for share, marks in MARKS.items() for mark in marks}
    within: defaultdict[str, float] = defaultdict(float, marks)
    first: defaultdict[str, float] = defaultdict(float)
    for language in languages:
        space = "" if language in UNSPACED else " "
        for word, frequency in _frequencies(language):
            share = frequency / len(languages)
            if frequency >= COMMON:
                capitalised = word[:1].upper() + word[1:] if capitals else word
                first[capitalised] += share / WORDS_A_TEXT
                within[space + capitalised] += CAPITALISED * share
                share *= 1 - CAPITALISED
            within[space + word] += share
    return within, first


def _frequencies(language: str) -> Iterator[tuple[str, float]]:
    try:
        wordfreq = importlib.import_module("wordfreq")
    except ImportError as error:
        raise MissingExtraError(
            "general word frequencies need the package wordfreq: "
            'pip install wordfreq, or pip install "smalti[demo]"'
        ) from error
    known = sorted(wordfreq.available_languages())
    if language not in known:
        raise ConfigError(
            f"there are no word frequencies of {language!r}; the languages are: {', '.join(known)}"
        )
    for word, frequency in wordfreq.get_frequency_dict(language).items():
        if not LUMPED.search(word):
            yield word, frequency
    for digits, ending in NUMBERS:
        # Zeros alone stand for all numbers of that kind.
        for number in range(1, 10**digits):
            word = f"{number:0{digits}}{ending}"
            yield word, wordfreq.word_frequency(word, language)


def _spread(
    shares: Mapping[str, float],
    carrier: str,
    tokenizer: Any,
    rows: int,
    advance: Callable[[float], None],
) -> np.ndarray:
    """The shares of tokens ``(rows,)``, from the shares of what stands behind the carrier."""
    lead = len(_ids(carrier, tokenizer))
    weights = np.fromiter(shares.values(), np.float64, len(shares))
    counts = np.zeros(rows)
    done = 0
    for ids, lengths in encode((carrier + text for text in shares), tokenizer, special=False):
        highest = int(ids.max(initial=0))
        require(
            highest < rows,
            f"expected tokens below the table's {rows} rows, got {highest}: "
            "it is another model's tokenizer",
            DataError,
        )
        places = np.arange(len(ids)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        parts = np.repeat(weights[done : done + len(lengths)], lengths)
        counts += np.bincount(ids, np.where(places < lead, 0.0, parts), minlength=rows)
        done += len(lengths)
        advance(len(lengths))
    return counts


def _ids(text: str, tokenizer: Any, special: bool = False) -> list[int]:
    ids: list[int] = next(encode([text], tokenizer, special=special)).ids.tolist()
    return ids
