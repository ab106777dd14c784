"""Running text as numbers of words, the commonest word first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice

import torch
from torch import Tensor

from smalti.data import locate, read_texts
from smalti.errors import DataError, require

SPLITS = ("train", "valid", "test")
# Where each split of a text is found.
PLACES = {"ptb": "text/ptb/ptb.{}.txt", "wikitext2": "text/wikitext2/wiki.{}.tokens"}
END, UNKNOWN = "<eos>", "<unk>"

Texts = Mapping[str, Sequence[str]]


def read_word_texts(name: str, limit: int | None = None) -> dict[str, list[str]]:
    """The lines of a text, by split.

    Args:
        name: ``"ptb"`` or ``"wikitext2"``.
        limit: Only so many lines of each split.
    """
    found = {split: read_texts(locate(PLACES[name].format(split))) for split in SPLITS}
    return {split: list(islice(lines, limit)) for split, lines in found.items()}


def as_ids(texts: Texts) -> tuple[dict[str, Tensor], list[str]]:
    """Lines of the splits as ids, the commonest training word first; and the words.

    A line ends with ``<eos>``; words that the training text lacks become ``<unk>``.
    """
    require(
        set(SPLITS) <= set(texts) and len(texts["train"]) > 0,
        f"expected lines of text for {', '.join(SPLITS)}, got {', '.join(texts)}",
        DataError,
    )
    split_words = {
        name: [word for line in texts[name] for word in (*line.split(), END)] for name in SPLITS
    }
    counts = Counter(split_words["train"])
    counts[UNKNOWN] += 0
    words = sorted(counts, key=lambda word: (-counts[word], word))
    number = {word: index for index, word in enumerate(words)}
    unknown = number[UNKNOWN]
    ids = {
        name: torch.tensor([number.get(word, unknown) for word in found])
        for name, found in split_words.items()
    }
    return ids, words
