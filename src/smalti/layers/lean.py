"""A transformer for inference: the same layers, as lean as torch allows.

For one sentence the matrix products take less time than what is around them, so that what a
module does on each call would count: here weights are laid out once, nothing is checked, and
sums and GELUs are parts of the products.

What a row becomes does not depend on the rows beside it, nor on padding, to the last bit: dense
layers see to it themselves, and attention does if its numbers of queries and keys are always
rounded up alike, to whole vectors of a processor. So rounding to bfloat16 is safe here, where a
difference in the last bit of float32 could otherwise tip it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, layer_norm, nn
from torch.nn.functional import pad, scaled_dot_product_attention

from smalti.layers.attending import HIDDEN, later
from smalti.layers.key_values import KeyValues
from smalti.layers.packed_linear import PackedLinear
from smalti.layers.transformer_block import Block

Context = list[tuple[Tensor, Tensor]]

# The widest vectors of float32 that processors have.
KEYS = 16
# Beyond, who sees whom is not written out: it would take more memory than all else.
MOST_CAUSAL_KEYS = 1024


class Beginning(NamedTuple):
    """What a first position that is always the same becomes before it sees the context."""

    pair: Tensor
    """Its key and value in the first layer, ``(1, 2, heads, width)``."""
    x: Tensor
    """What the first layer's attention makes of it, ``(1, dim)``."""
    asked: Tensor
    """What it then asks the context for, likewise."""


class Lean:
    """The weights of all layers, laid out for inference.

    Args:
        blocks: The layers.
        norm: What comes after the last.
        half: Whether dense layers round to bfloat16; steps of one row stay in float32.
    """

    def __init__(self, blocks: Sequence[Block], norm: nn.LayerNorm, half: bool) -> None:
        self.layers = [_Layer(block, half) for block in blocks]
        self.norm = _norm(norm)
        self.heads, self.causal = blocks[0].attention.heads, blocks[0].attention.causal
        crossing = [block.cross.inward for block in blocks if block.cross is not None]
        self.context: PackedLinear | None = None
        if crossing:
            # The context is read by all layers in one product.
            weight = torch.cat([layer.weight for layer in crossing])
            bias = torch.cat([layer.bias for layer in crossing])
            self.context = PackedLinear(weight, bias, half=half)

    def read(self, context: Tensor) -> Context:
        """For each layer the keys and values of a context ``(batch, length, context_dim)``."""
        if self.context is None:
            return []
        batch, length, width = context.shape
        made = self.context(context.reshape(-1, width))
        parts = made.view(batch, length, len(self.layers), 2, self.heads, -1)
        pairs = _rounded_up(parts.permute(2, 3, 0, 4, 1, 5)).unbind()
        return [(pair[0], pair[1]) for pair in pairs]

    def whole(
        self,
        x: Tensor,
        context: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        context_mask: Tensor | None = None,
    ) -> Tensor:
        """All positions at once, ``(batch, length, dim)``; masks as for ``Transformer``."""
        bias = self._bias(x, mask)
        read: Context = []
        context_bias = None
        if context is not None:
            read = self.read(context)
            context_bias = hiding_keys(context.shape[1], context_mask, x.device)
        length = x.shape[1]
        if len(x) == 1:
            # Every layer would round up by itself; for one sentence, more rows cost less.
            x = _rounded_up(x)
        shape, rows = x.shape, x.reshape(-1, x.shape[2])
        for number, layer in enumerate(self.layers):
            rows = layer.whole(rows, shape, bias)
            if read:
                rows = layer.crossed(rows, *read[number], context_bias, rounded=True)
            rows = layer.dense(rows)
        return layer_norm(rows, *self.norm).view(shape)[:, :length]

    def _bias(self, x: Tensor, mask: Tensor | None) -> Tensor | None:
        """What hides positions from each other; None where being causal is enough."""
        if not self.causal:
            return hiding_keys(x.shape[1], mask, x.device)
        # Padding comes last, where no position sees it.
        if x.shape[1] > MOST_CAUSAL_KEYS:
            return None
        if mask is None:
            return _causal_bias(x.shape[1], x.device)
        bias = hiding_keys(x.shape[1], mask, x.device)
        return bias.masked_fill(later(bias.shape[3], bias.shape[3], x.device), HIDDEN)

    def step(self, x: Tensor, cache: KeyValues) -> Tensor:
        """The next position of every row, ``(rows, dim)``; the cache remembers it."""
        cache.make_room()
        x = self.layers[0].next(x, cache, 0)
        if cache.context:
            x = self.layers[0].crossed(x, *cache.context[0], cache.context_bias)
        return self._rest_of_step(x, cache)

    def beginning(self, x: Tensor) -> Beginning:
        """What ``begin`` needs to know of a first position ``(1, dim)``; there is a context."""
        layer = self.layers[0]
        parts = layer.inward(layer_norm(x, *layer.norm)).view(1, 3, self.heads, -1)
        # Who sees itself alone takes over its own value.
        x = layer.outward.added(parts[:, 2].reshape(x.shape), x)
        return Beginning(parts[:, 1:], x, layer.asked(x))

    def begin(self, known: Beginning, cache: KeyValues) -> Tensor:
        """``step`` of a first position that is the same in every row."""
        cache.put_both(0, known.pair)
        x, asked = (part.repeat(cache.batch, 1) for part in (known.x, known.asked))
        x = self.layers[0].answered(x, asked, *cache.context[0], cache.context_bias)
        return self._rest_of_step(x, cache)

    def _rest_of_step(self, x: Tensor, cache: KeyValues) -> Tensor:
        """From the first layer's dense part on."""
        x = self.layers[0].dense(x)
        for number, layer in enumerate(self.layers[1:], start=1):
            x = layer.next(x, cache, number)
            if cache.context:
                x = layer.crossed(x, *cache.context[number], cache.context_bias)
            x = layer.dense(x)
        cache.position += 1
        return layer_norm(x, *self.norm)


class _Layer:
    def __init__(self, block: Block, half: bool) -> None:
        attention, cross, dense = block.attention, block.cross, block.dense
        self.heads = attention.heads
        self.norm, self.dense_norm = _norm(attention.norm), _norm(dense.norm)
        self.inward = PackedLinear.of(attention.inward, half=half)
        self.outward = PackedLinear.of(attention.outward, half=half)
        if cross is not None:
            self.cross_norm = _norm(cross.norm)
            self.cross_queries = PackedLinear.of(cross.queries, half=half)
            self.cross_outward = PackedLinear.of(cross.outward, half=half)
        self.widen = PackedLinear.of(dense.widen, half=half)
        self.narrow = PackedLinear.of(dense.narrow, half=half)

    def whole(self, x: Tensor, shape: Sequence[int], bias: Tensor | None) -> Tensor:
        batch, length, _ = shape
        made = self.inward(layer_norm(x, *self.norm))
        parts = made.view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = _rounded_up(parts).unbind()
        # Without a bias it is a causal layer that is too long for one.
        seen = scaled_dot_product_attention(query, key, value, bias, is_causal=bias is None)
        seen = seen[:, :, :length]
        return self.outward.added(seen.transpose(1, 2).reshape(x.shape), x)

    def next(self, x: Tensor, cache: KeyValues, number: int) -> Tensor:
        parts = self.inward(layer_norm(x, *self.norm)).view(x.shape[0], 3, self.heads, -1)
        keys, values = cache.put_both(number, parts[:, 1:])
        seen = scaled_dot_product_attention(parts[:, 0].unsqueeze(2), keys, values)
        return self.outward.added(seen.reshape(x.shape), x)

    def crossed(
        self,
        x: Tensor,
        keys: Tensor,
        values: Tensor,
        bias: Tensor | None,
        *,
        rounded: bool = False,
    ) -> Tensor:
        return self.answered(x, self.asked(x), keys, values, bias, rounded=rounded)

    def asked(self, x: Tensor) -> Tensor:
        return self.cross_queries(layer_norm(x, *self.cross_norm))

    def answered(
        self,
        x: Tensor,
        asked: Tensor,
        keys: Tensor,
        values: Tensor,
        bias: Tensor | None,
        *,
        rounded: bool = False,
    ) -> Tensor:
        # Rows that share a context are looked up as if they were its positions.
        asked = asked.view(keys.shape[0], -1, self.heads, keys.shape[3]).transpose(1, 2)
        if rounded:
            length, asked = asked.shape[2], _rounded_up(asked)
            seen = scaled_dot_product_attention(asked, keys, values, bias)[:, :, :length]
        else:
            seen = scaled_dot_product_attention(asked, keys, values, bias)
        return self.cross_outward.added(seen.transpose(1, 2).reshape(x.shape), x)

    def dense(self, x: Tensor) -> Tensor:
        return self.narrow.added(self.widen.bent(layer_norm(x, *self.dense_norm)), x)


def hiding_keys(length: int, mask: Tensor | None, device: torch.device) -> Tensor:
    """A bias ``(batch or 1, 1, 1, keys)`` for a number of keys that is rounded up.

    It is there also where it hides nothing: attention without one adds up in another order.

    Args:
        length: How many keys there are.
        mask: ``(batch, length)``, False where one is padding.
        device: Where.
    """
    bias = _rounding_bias(length, device)
    if mask is None:
        return bias
    bias = bias.repeat(len(mask), 1, 1, 1)
    bias[:, 0, 0, :length].masked_fill_(~mask, HIDDEN)
    return bias


# To make a bias takes longer than to use it for one sentence, and lengths are few.
@functools.lru_cache(maxsize=256)
def _rounding_bias(length: int, device: torch.device) -> Tensor:
    """What hides the keys that rounding up adds."""
    bias = torch.zeros(1, 1, 1, length + -length % KEYS, device=device)
    bias[..., length:] = HIDDEN
    return bias


@functools.lru_cache(maxsize=64)
def _causal_bias(length: int, device: torch.device) -> Tensor:
    """What hides later positions too."""
    bias = _rounding_bias(length, device)
    return bias.masked_fill(later(bias.shape[3], bias.shape[3], device), HIDDEN)


def _rounded_up(x: Tensor) -> Tensor:
    """Queries, keys or values ``(..., length, width)``, more of them."""
    missing = -x.shape[-2] % KEYS
    return pad(x, (0, 0, 0, missing)) if missing else x


def _norm(layer: nn.LayerNorm) -> tuple[list[int], Tensor, Tensor, float]:
    return list(layer.normalized_shape), layer.weight, layer.bias, layer.eps
