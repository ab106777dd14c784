"""Texts, labelled sets and token counts: found, checked and read as streams."""

from smalti.data.counts import TokenCounts, count_tokens
from smalti.data.labelled import Labelled, read_labelled
from smalti.data.locate import locate
from smalti.data.text import TextFile, open_texts, read_texts
from smalti.data.tokens import TokenBatch, encode, fingerprint
from smalti.data.word_frequencies import general_counts, smoothed

__all__ = [
    "Labelled",
    "TextFile",
    "TokenBatch",
    "TokenCounts",
    "count_tokens",
    "encode",
    "fingerprint",
    "general_counts",
    "locate",
    "open_texts",
    "read_labelled",
    "read_texts",
    "smoothed",
]
