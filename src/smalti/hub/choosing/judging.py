"""Judges tables by what they do to a model: outputs kept, or a labelled score."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from smalti.data.labelled import Labelled
from smalti.embeddings import CompressedEmbedding
from smalti.errors import DataError, require
from smalti.hub.batching import batches, limit_of
from smalti.hub.choosing.targets import mean_cosine, target_of
from smalti.hub.classification import head_figures
from smalti.hub.groups import find_group
from smalti.hub.opening import Opened
from smalti.hub.pooling import sentence_settings
from smalti.hub.similarity import distinct, similarity


@dataclass(frozen=True)
class Verdict:
    """What a table does to its model.

    Args:
        cosine: Mean cosine of outputs with the original's, 1 where nothing changed.
        score: The labelled score, where labels were given.
        original: The original's labelled score.
    """

    cosine: float
    score: float | None = None
    original: float | None = None

    @property
    def drop(self) -> float:
        """Loss in percent: of the labelled score if there is one, else of the mean cosine."""
        if not self.original:
            return 100 * (1 - self.cosine)
        # Where all outputs are the same there is no score: nothing is left of it.
        return 100 * (self.original - (self.score or 0.0)) / abs(self.original)


class Judge:
    """Tries tables in one model on the same texts.

    Args:
        opened: The original model; it is as before after each trial.
        texts: Texts it is tried on.
        labelled: Examples for a labelled score: scored pairs, or what a fine-tuned head is for.
    """

    def __init__(
        self, opened: Opened, texts: Sequence[str], labelled: Labelled | None = None
    ) -> None:
        self.opened = opened
        self.target = target_of(opened, texts)
        require(
            math.isfinite(mean_cosine(self.target, opened.model)),
            "the model's outputs are not finite numbers, so that tables can't be judged: its "
            "weights are damaged",
            DataError,
        )
        self._labelled = labelled
        self._original = self._score() if labelled is not None else None

    def __call__(self, table: CompressedEmbedding) -> Verdict:
        """The verdict on a table that was fitted to the model's own."""
        with in_place(self.opened, table.dense()):
            cosine = mean_cosine(self.target, self.opened.model)
            return Verdict(cosine, self._score(), self._original)

    def _score(self) -> float | None:
        if self._labelled is None:
            return None
        model, tokenizer = self.opened.model, self.opened.tokenizer
        limit = limit_of(model, tokenizer)
        if self.opened.kind == "classifier":
            made = batches(tokenizer, self._labelled.first, self._labelled.second, limit=limit)
            figures = head_figures(model, made, self._labelled, progress=False)
            return figures["accuracy" if self._labelled.classes else "spearman"]
        settings = sentence_settings(self.opened.path)
        made = batches(tokenizer, distinct(self._labelled)[0], limit=settings.limit or limit)
        pooling = settings.pooling
        return similarity(model, made, self._labelled, pooling=pooling, progress=False)["spearman"]


@contextmanager
def in_place(opened: Opened, dense: Tensor) -> Iterator[None]:
    """Let other numbers stand in a model's table for a while, in all places that share it."""
    weight = find_group(opened.model).weight
    before = weight.detach().clone()
    with torch.no_grad():
        weight.copy_(dense)
    try:
        yield
    finally:
        with torch.no_grad():
            weight.copy_(before)
