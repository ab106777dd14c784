"""Tokens of GLUE tasks: what kept rows cover, and how many numbers a table of them has.

Reference:
    Tamura, Yoshinaga, Neishi, "Further Compressing Distilled Language Models via
    Frequency-aware Partial Sparse Coding of Embeddings", tables 5 to 8.

Differs from the paper:
    Token coverage is given without padding too, which the paper counts as covered tokens.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from smalti.analysis import coverage
from smalti.data import Labelled, count_tokens
from smalti.embeddings.partial import commonest
from smalti.embeddings.sparse import parameters
from smalti.experiments.fine_tuned.measuring import covered
from smalti.experiments.fine_tuned.settings import GlueData
from smalti.experiments.fine_tuned.subjects import (
    base_model,
    read_split,
    special_rows,
    texts_of,
)
from smalti.experiments.kinds.base import Kind, Measured, kinds
from smalti.hub import open_model
from smalti.hub.batching import encoded
from smalti.training import as_settings


class VocabularySettings(GlueData):
    """An arm.

    Args:
        keep: The share of the tokens that occur whose rows are kept.
        neighbours: By task, how many kept rows make up another.
        dim: Width of the rows that are counted.
        printed: By task, the percentage of covered tokens that the paper has.
    """

    keep: PositiveFloat
    neighbours: dict[str, PositiveInt] = Field(default_factory=dict)
    dim: PositiveInt = 768
    printed: dict[str, PositiveFloat] = Field(default_factory=dict)


@kinds.register("vocabulary")
class Vocabulary(Kind):
    """Settings are those of ``VocabularySettings``; nothing is trained, nothing is random."""

    def measure(self, settings: dict[str, Any], seed: int, place: Path) -> Measured:
        """Count the training part, look at the test set."""
        del seed
        asked = as_settings(VocabularySettings, settings)
        metrics: dict[str, float] = {}
        for task in asked.tasks:
            split = read_split(task, asked)
            opened = open_model(base_model(asked, split, place / task))
            tokenizer, rows = opened.tokenizer, len(opened.tokenizer)
            counts = count_tokens(texts_of(split.train), tokenizer, rows, progress=False).counts
            kept = commonest(counts.double(), asked.keep, list(special_rows(tokenizer, rows)))
            found = coverage(covered(split.test), tokenizer, kept, rows).numbers
            numbers = parameters(
                len(kept), rows - len(kept), asked.dim, asked.neighbours.get(task, 1)
            )
            metrics |= {
                f"kept_{task}": float(len(kept)),
                f"tokens_{task}": 100 * found["token_coverage"],
                f"sentences_{task}": 100 * found["sentence_coverage"],
                f"padded_tokens_{task}": 100
                * padded_coverage(tokenizer, split.test, kept, asked.longest),
                f"parameter_share_{task}": 100 * numbers / (rows * asked.dim),
                f"parameters_{task}": float(numbers),
            }
            if task in asked.printed:
                for way in ("tokens", "padded_tokens"):
                    off = abs(metrics[f"{way}_{task}"] - asked.printed[task])
                    metrics[f"{way}_off_{task}"] = off
        return Measured(metrics)


def padded_coverage(tokenizer: Any, examples: Labelled, kept: Tensor, longest: int) -> float:
    """The share of covered tokens as the paper has it: all examples padded, padding covered."""
    made = encoded(tokenizer, examples.first, examples.second, limit=longest)
    ids = torch.tensor([token for text in made.columns["input_ids"] for token in text])
    strange = int((~torch.isin(ids, kept)).sum())
    return 1 - strange / (longest * len(examples))
