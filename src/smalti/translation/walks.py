"""Ways to write a sentence token by token: with a memory, or computing all anew each time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor
from torch.nn.functional import embedding

from smalti.translation.ids import BEGIN

if TYPE_CHECKING:
    from smalti.translation.autoregressive import Autoregressive
    from smalti.translation.encoding import Encoded


# Few translations are as long as they may be; where one is longer, room is made for it.
FIRST_ROOM = 64


class Walk(Protocol):
    """Some rows of tokens that grow together."""

    def begin(self) -> Tensor:
        """The ids ``(rows,)`` to start with."""

    def step(self, ids: Tensor) -> Tensor:
        """Logits ``(rows, vocabulary)`` of what comes after ``ids`` ``(rows,)``."""

    def follow(self, rows: Tensor) -> None:
        """Go on with these rows in the place of all, each within its sentence."""

    def keep(self, rows: Tensor, sentences: Tensor) -> None:
        """Go on with some of the sentences, and their rows."""


class CachedWalk:
    """Each step computes one position; keys and values of the earlier ones are kept.

    Args:
        model: Whose tokens are walked.
        encoded: The sources.
        per_source: How many rows each has.
        length: How many steps are coming at most.
    """

    def __init__(
        self, model: Autoregressive, encoded: Encoded, per_source: int, length: int
    ) -> None:
        self.rows = len(encoded.vectors) * per_source
        decoder = model.decoder
        self.cache = decoder.new_cache(
            self.rows,
            encoded.vectors,
            context_mask=encoded.needed_mask(),
            length=min(length, FIRST_ROOM),
        )
        self.lean, self.logits = decoder.lean(), model.words.lean_logits()
        self.inward = model.words.dense("target")
        self.scale = model.words.scale
        self.positions = model.positions(length).unbind()

    def begin(self) -> Tensor:
        """The ids ``(rows,)`` to start with."""
        return self.inward.new_full((self.rows,), BEGIN, dtype=torch.int64)

    def step(self, ids: Tensor) -> Tensor:
        """Logits ``(rows, vocabulary)`` of what comes after ``ids`` ``(rows,)``."""
        here = self.positions[self.cache.position]
        x = here.add(embedding(ids, self.inward), alpha=self.scale)
        return self.logits(self.lean.step(x, self.cache))

    def follow(self, rows: Tensor) -> None:
        """Go on with these rows in the place of all, each within its sentence."""
        self.cache.follow(rows)

    def keep(self, rows: Tensor, sentences: Tensor) -> None:
        """Go on with some of the sentences, and their rows."""
        self.cache.keep(rows, sentences)


class RepeatedWalk:
    """Each step computes all positions so far; what the cache is measured against.

    Args:
        model: Whose tokens are walked.
        encoded: The sources.
        per_source: How many rows each has.
    """

    def __init__(self, model: Autoregressive, encoded: Encoded, per_source: int) -> None:
        self.model = model
        self.encoded = encoded.repeated(per_source)
        self.before = torch.empty(
            (len(self.encoded.vectors), 0), dtype=torch.int64, device=encoded.vectors.device
        )

    def begin(self) -> Tensor:
        """The ids ``(rows,)`` to start with."""
        return self.before.new_full((len(self.before),), BEGIN)

    def step(self, ids: Tensor) -> Tensor:
        """Logits ``(rows, vocabulary)`` of what comes after ``ids`` ``(rows,)``."""
        self.before = torch.cat([self.before, ids[:, None]], dim=1)
        return self.model.words.logits(self.model.decode(self.encoded, self.before)[:, -1])

    def follow(self, rows: Tensor) -> None:
        """Go on with these rows in the place of all, each within its sentence."""
        self.before = self.before[rows]

    def keep(self, rows: Tensor, sentences: Tensor) -> None:
        """Go on with some of the sentences, and their rows."""
        del sentences
        self.before = self.before[rows]
        self.encoded = self.encoded.chosen(rows)
