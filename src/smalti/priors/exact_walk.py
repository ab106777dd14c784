"""The walk of an entropy coder: who writes and who reads compute the same bits.

The transformer's step is done once more here, in the arithmetic of :mod:`smalti.priors.exact`.
Logits agree with those of the prior to about three digits after the point, which costs no
measurable rate. They do not depend on how many grids are walked at once, on the number of
threads, or on whether codes are known before. Between machines nothing is left to differ but
faults: float64 must be IEEE 754, as it is on all processors and graphics cards torch runs on
except those without float64. What must be equal are the prior's weights.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from smalti.errors import DataError, require
from smalti.priors import exact
from smalti.priors.stepper import Stepper

if TYPE_CHECKING:
    from smalti.layers.transformer_block import Dense, SelfAttention
    from smalti.priors.autoregressive import Autoregressive


class ExactWalk(Stepper):
    """Each step computes one position of all grids, in exact arithmetic.

    Args:
        prior: Whose codes are walked; a rounded copy of its weights is taken.
        count: How many grids are walked at the same time.
        above: Codes of the levels above.
    """

    def __init__(self, prior: Autoregressive, count: int, above: tuple[Tensor, ...]) -> None:
        super().__init__(prior.level, count)
        self.prior = rounded(prior)
        self.layers = self.prior.transformer.layers()
        self.places = self.prior.places(above)
        self.cache = self.prior.transformer.new_cache(count, length=self.level.num_codes)
        self.before = self.prior.start.expand(count, -1)

    def probabilities(self) -> Tensor:
        """Probabilities ``(count, size)`` of the next code, float64, the same bits everywhere."""
        return exact.probabilities(self.logits())

    @torch.no_grad()
    def _next(self) -> Tensor:
        x = exact.stream(self.before + self.places[:, self.position])
        self.cache.make_room()
        for number, layer in enumerate(self.layers):
            x = exact.stream(x + self._attention(x, layer.attention, number))
            x = exact.stream(x + _dense(x, layer.dense))
        self.cache.position += 1
        hidden = _norm(x, self.prior.transformer.norm)
        book = self.place[2]
        first, size = self.level.offsets[book], self.level.code_sizes[book]
        own = slice(first, first + size)
        scores = exact.dense(hidden, self.prior.head.weight[own], self.prior.head.bias[own])
        return exact.stream(scores)

    def _take(self, codes: Tensor) -> None:
        self.before = self.prior.vectors(codes, self.place[2])

    def _attention(self, x: Tensor, part: SelfAttention, layer: int) -> Tensor:
        made = exact.activation(_linear(_norm(x, part.norm), part.inward))
        query, key, value = made.view(len(x), 3, part.heads, 1, -1).unbind(dim=1)
        seen = exact.attended(query, *self.cache.put(layer, key, value))
        return _linear(seen.flatten(1), part.outward)


@torch.no_grad()
def rounded(prior: Autoregressive) -> Autoregressive:
    """A copy in float64 whose sums and products are exact; the original stays as it is."""
    twin = copy.deepcopy(prior).double().requires_grad_(False)
    for name, tensor in twin.named_parameters():
        require(
            bool(tensor.isfinite().all()),
            f"{name} is not finite: this prior can't code anything; train it anew",
            DataError,
        )
        tensor.copy_(exact.stream(tensor))
    for part in twin.modules():
        if isinstance(part, nn.Linear):
            part.weight.copy_(exact.weight(part.weight))
    return twin


def _dense(x: Tensor, part: Dense) -> Tensor:
    return _linear(exact.gelu(_linear(_norm(x, part.norm), part.widen)), part.narrow)


def _linear(x: Tensor, part: nn.Linear) -> Tensor:
    return exact.dense(x, part.weight, part.bias)


def _norm(x: Tensor, part: nn.LayerNorm) -> Tensor:
    return exact.normalised(x, part.weight, part.bias, part.eps)
