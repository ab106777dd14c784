"""Texts, labelled sets and token counts: found, checked and read as streams."""

from smalti.data.aligned import AlignedTexts, read_aligned
from smalti.data.counts import TokenCounts, count_tokens
from smalti.data.glue import GLUE, GlueSplit, glue_task, read_glue
from smalti.data.labelled import Labelled, read_labelled
from smalti.data.lines import check_apart, read_lines, write_lines
from smalti.data.locate import locate
from smalti.data.splicing import splice
from smalti.data.subwords import Subwords
from smalti.data.text import TextFile, open_texts, read_texts
from smalti.data.token_batches import PairBatch, TokenPairs, cut_by_tokens, padded
from smalti.data.tokens import TokenBatch, encode, fingerprint
from smalti.data.word_frequencies import general_counts, smoothed

__all__ = [
    "GLUE",
    "AlignedTexts",
    "GlueSplit",
    "Labelled",
    "PairBatch",
    "Subwords",
    "TextFile",
    "TokenBatch",
    "TokenCounts",
    "TokenPairs",
    "check_apart",
    "count_tokens",
    "cut_by_tokens",
    "encode",
    "fingerprint",
    "general_counts",
    "glue_task",
    "locate",
    "open_texts",
    "padded",
    "read_aligned",
    "read_glue",
    "read_labelled",
    "read_lines",
    "read_texts",
    "smoothed",
    "splice",
    "write_lines",
]
