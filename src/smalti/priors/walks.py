"""Walks to sample by: one keeps what it computed, one computes all anew at each step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from smalti.priors.stepper import Stepper

if TYPE_CHECKING:
    from smalti.priors.autoregressive import Autoregressive


class CachedWalk(Stepper):
    """Each step computes one position; keys and values of the earlier ones are kept.

    Args:
        prior: Whose codes are walked.
        count: How many grids are walked at the same time.
        above: Codes of the levels above.
    """

    def __init__(self, prior: Autoregressive, count: int, above: tuple[Tensor, ...]) -> None:
        super().__init__(prior.level, count)
        self.prior = prior
        self.places = prior.places(above)
        self.cache = prior.transformer.new_cache(count, length=self.level.num_codes)
        self.layers = prior.transformer.lean()
        self.before = prior.start.expand(count, -1)
        # Cut once: at a step of one position, what torch does around its sums counts.
        sizes = self.level.code_sizes
        self.vectors = prior.codes.weight.split(sizes)
        self.heads = list(
            zip(prior.head.weight.split(sizes), prior.head.bias.split(sizes), strict=True)
        )

    def _next(self) -> Tensor:
        x = self.before + self.places[:, self.position]
        hidden = self.layers.step(x, self.cache)
        return functional.linear(hidden, *self.heads[self.place[2]])

    def _take(self, codes: Tensor) -> None:
        self.before = self.vectors[self.place[2]].index_select(0, codes)


class RepeatedWalk(Stepper):
    """Each step computes all positions so far; what the cache is measured against.

    Args:
        prior: Whose codes are walked.
        count: How many grids are walked at the same time.
        above: Codes of the levels above.
    """

    def __init__(self, prior: Autoregressive, count: int, above: tuple[Tensor, ...]) -> None:
        super().__init__(prior.level, count)
        self.prior = prior
        self.places = prior.places(above)
        self.before = prior.start.expand(count, 1, -1)

    def _next(self) -> Tensor:
        x = self.before + self.places[:, : self.position + 1]
        hidden = self.prior.transformer(x)[:, -1]
        return self.prior.scores(hidden, self.place[2])

    def _take(self, codes: Tensor) -> None:
        latest = self.prior.vectors(codes, self.place[2])
        self.before = torch.cat([self.before, latest[:, None]], dim=1)
