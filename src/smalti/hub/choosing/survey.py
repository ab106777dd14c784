"""One pass over the text: how often rows are used, and some texts to judge and teach with."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from smalti.data import (
    TextFile,
    TokenCounts,
    count_tokens,
    fingerprint,
    general_counts,
    open_texts,
    read_texts,
)
from smalti.errors import ConfigError, DataError, require

# Texts that tables are judged on; choosing must not know their words.
JUDGING = 512
# Texts that codewords learn from.
TEACHING = 8192
# With fewer texts than this there is nothing to hold out.
FEW = 1024
# A text with more numbers, or more unknown tokens, than this share is no text for this model.
MOST_NUMBERS, MOST_UNKNOWN = 0.9, 0.5
# Length, in tokens, of texts that are made up where there are none.
MADE_UP_LENGTH = 16


@dataclass(frozen=True, eq=False)
class Survey:
    """What is known of the text that a model is used on.

    Args:
        counts: Of all texts.
        choosing: ``(rows,)`` counts without the texts that tables are judged on.
        judging: Texts that tables are judged on.
        teaching: Texts that codewords learn from.
        notes: What the user should know about where this comes from.
    """

    counts: TokenCounts
    choosing: Tensor
    judging: list[str]
    teaching: list[str]
    notes: tuple[str, ...]


def text_files(
    text: str | Path | Sequence[str | Path | TextFile], columns: Sequence[str | int] = ()
) -> list[TextFile]:
    """Look at files of text, so that what is wrong with them is found before long work."""
    paths = [text] if isinstance(text, (str, Path)) else text
    return [path if isinstance(path, TextFile) else open_texts(path, columns) for path in paths]


def survey(
    tokenizer: Any,
    rows: int,
    text: str | Path | Sequence[str | Path | TextFile] = (),
    *,
    columns: Sequence[str | int] = (),
    counts: str | Path | TokenCounts | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Survey:
    """Read text files once; without any, use a counts file or general word frequencies.

    Args:
        tokenizer: The model's.
        rows: Rows of its table.
        text: Plain, gzipped, TSV, CSV or JSON-lines files.
        columns: Which columns hold text.
        counts: Saved counts, in the place of those of the text.
        seed: Chooses the texts to judge and to teach with.
        progress: Whether to draw a bar on stderr; None does so on a terminal.
    """
    if tokenizer is None:
        raise ConfigError(
            "the model has no tokenizer, so that nothing can be counted: put its tokenizer's "
            "files into its directory, or pass tokenizer= with a loaded model"
        )
    files = text_files(text, columns)
    given = _given(counts, tokenizer, rows)
    if not files:
        found = given or general_counts(tokenizer, rows, progress=progress)
        source = "the counts given" if given else "general word frequencies of English (wordfreq)"
        made_up = _made_up(tokenizer, found.counts, JUDGING, seed)
        note = (
            f"no text was given: rows are weighed by {source}, and tables are judged on texts "
            "made up from them"
        )
        return Survey(found, found.counts.double(), made_up, [], (note,))
    sample = Sample(JUDGING + TEACHING, seed)
    sources = tuple(str(file) for file in files)
    counted = count_tokens(
        sample.passing(read_texts(files)), tokenizer, rows, sources=sources, progress=progress
    )
    notes = [f"text: {source}" for source in sources]
    # Texts may be there more than once, such as sentences that stand in several pairs.
    times = Counter(sample.texts)
    texts = list(times)
    require(len(texts) > 0, f"{', '.join(sources)} hold no text", DataError)
    _require_words(texts, counted, tokenizer)
    found = given or counted
    if len(texts) < FEW:
        notes.append(f"only {len(texts)} texts: tables are judged on texts they were fitted to")
        return Survey(found, found.counts.double(), texts[:JUDGING], texts, tuple(notes))
    judging, teaching = texts[:JUDGING], texts[JUDGING:]
    choosing = found.counts
    if given is None:
        copies = [text for text in judging for _ in range(times[text])]
        held_out = count_tokens(copies, tokenizer, rows, progress=False)
        choosing = (found.counts - held_out.counts).clamp(min=0)
    return Survey(found, choosing.double(), judging, teaching, tuple(notes))


def _require_words(texts: list[str], counted: TokenCounts, tokenizer: Any) -> None:
    """Refuse texts that say nothing about the use of rows."""
    words = [word for text in texts for word in text.split()]
    numbers = sum(word.isdigit() for word in words)
    require(
        numbers <= MOST_NUMBERS * len(words),
        f"{numbers} of {len(words)} words of the text are numbers: it seems to hold token ids; "
        "give the text itself",
        DataError,
    )
    unknown = tokenizer.unk_token_id
    if unknown is None or unknown >= len(counted.counts):
        return
    # The tokens around a text are always known.
    around = [i for i in tokenizer.all_special_ids if i != unknown and i < len(counted.counts)]
    strange = int(counted.counts[unknown])
    every = int(counted.counts.sum() - counted.counts[around].sum())
    require(
        strange <= MOST_UNKNOWN * every,
        f"{strange} of {every} tokens of the text are unknown to the model's tokenizer: give "
        "text in a language that it knows",
        DataError,
    )


def _given(
    counts: str | Path | TokenCounts | None, tokenizer: Any, rows: int
) -> TokenCounts | None:
    if counts is None:
        return None
    if isinstance(counts, TokenCounts):
        require(
            counts.tokenizer == fingerprint(tokenizer),
            "the counts come from another model's tokenizer",
            DataError,
        )
        found = counts.for_rows(rows)
    else:
        found = TokenCounts.load(counts, tokenizer, rows)
    require(found.tokens > 0, "the counts are all zero: count a text again", DataError)
    return found


class Sample:
    """A fair sample of a stream (reservoir sampling), in random order."""

    def __init__(self, size: int, seed: int) -> None:
        self.texts: list[str] = []
        self._size, self._random = size, random.Random(seed)

    def passing(self, stream: Iterable[str]) -> Iterator[str]:
        """The stream itself; what is sampled of it is in ``texts`` at its end."""
        for seen, text in enumerate(stream):
            if seen < self._size:
                # Inside-out shuffle: the sample is in random order from the start.
                place = self._random.randrange(seen + 1)
                self.texts.append(text)
                self.texts[seen], self.texts[place] = self.texts[place], self.texts[seen]
            elif (place := self._random.randrange(seen + 1)) < self._size:
                self.texts[place] = text
            yield text


def _made_up(tokenizer: Any, counts: Tensor, texts: int, seed: int) -> list[str]:
    """Texts of words drawn by their counts: no sense, but the right words."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.multinomial(
        counts.double(), texts * MADE_UP_LENGTH, replacement=True, generator=generator
    )
    rows = drawn.clamp(max=len(tokenizer) - 1).view(texts, MADE_UP_LENGTH).tolist()
    made: list[str] = tokenizer.batch_decode(rows, skip_special_tokens=True)
    texts_of_words = [text for text in made if text.strip()]
    require(
        len(texts_of_words) > 0,
        "the counts are of special tokens only: there is no text to judge tables on; give some",
        DataError,
    )
    return texts_of_words
