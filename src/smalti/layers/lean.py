"""A transformer for inference: the same layers, as lean as torch allows.

For one sentence the matrix products take less time than what is around them, so that what a
module does on each call would count: here weights are laid out once, nothing is checked, and
sums and GELUs are parts of the products.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, scaled_dot_product_attention

from smalti.layers.attending import HIDDEN, later
from smalti.layers.key_values import KeyValues
from smalti.layers.packed_linear import PackedLinear
from smalti.layers.transformer_block import Block

Context = list[tuple[Tensor, Tensor]]


class Lean:
    """The weights of all layers, laid out for inference.

    Args:
        blocks: The layers.
        norm: What comes after the last.
    """

    def __init__(self, blocks: Sequence[Block], norm: nn.LayerNorm) -> None:
        self.layers = [_Layer(block) for block in blocks]
        self.norm = _norm(norm)
        crossing = [block.cross.inward for block in blocks if block.cross is not None]
        self.heads, self.context = blocks[0].attention.heads, None
        if crossing:
            # The context is read by all layers in one product.
            weight = torch.cat([layer.weight for layer in crossing])
            self.context = PackedLinear(weight, torch.cat([layer.bias for layer in crossing]))

    def read(self, context: Tensor) -> Context:
        """For each layer the keys and values of a context ``(batch, length, context_dim)``."""
        if self.context is None:
            return []
        batch, length, width = context.shape
        made = self.context(context.reshape(-1, width))
        parts = made.view(batch, length, len(self.layers), 2, self.heads, -1)
        pairs = parts.permute(2, 3, 0, 4, 1, 5).unbind()
        return [(pair[0], pair[1]) for pair in pairs]

    def whole(
        self,
        x: Tensor,
        context: Tensor | None = None,
        *,
        bias: Tensor | None = None,
        context_bias: Tensor | None = None,
    ) -> Tensor:
        """All positions at once, ``(batch, length, dim)``; biases hide some of what is seen."""
        read = [] if context is None else self.read(context)
        shape, rows = x.shape, x.reshape(-1, x.shape[2])
        for number, layer in enumerate(self.layers):
            rows = layer.whole(rows, shape, bias)
            if read:
                rows = layer.crossed(rows, *read[number], context_bias)
            rows = layer.dense(rows)
        return layer_norm(rows, *self.norm).view(shape)

    def step(self, x: Tensor, cache: KeyValues) -> Tensor:
        """The next position of every row, ``(rows, dim)``; the cache remembers it."""
        cache.make_room()
        for number, layer in enumerate(self.layers):
            x = layer.next(x, cache, number)
            if cache.context:
                x = layer.crossed(x, *cache.context[number], cache.context_bias)
            x = layer.dense(x)
        cache.position += 1
        return layer_norm(x, *self.norm)


class _Layer:
    def __init__(self, block: Block) -> None:
        attention, cross, dense = block.attention, block.cross, block.dense
        self.heads, self.causal = attention.heads, attention.causal
        self.norm, self.dense_norm = _norm(attention.norm), _norm(dense.norm)
        self.inward = PackedLinear.of(attention.inward)
        self.outward = PackedLinear.of(attention.outward)
        if cross is not None:
            self.cross_norm = _norm(cross.norm)
            self.cross_queries = PackedLinear.of(cross.queries)
            self.cross_outward = PackedLinear.of(cross.outward)
        self.widen, self.narrow = PackedLinear.of(dense.widen), PackedLinear.of(dense.narrow)

    def whole(self, x: Tensor, shape: Sequence[int], bias: Tensor | None) -> Tensor:
        batch, length, _ = shape
        made = self.inward(layer_norm(x, *self.norm))
        parts = made.view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind()
        causal = self.causal
        if causal and bias is not None:
            bias, causal = bias.masked_fill(later(length, length, x.device), HIDDEN), False
        seen = scaled_dot_product_attention(query, key, value, bias, is_causal=causal)
        return self.outward.added(seen.transpose(1, 2).reshape(x.shape), x)

    def next(self, x: Tensor, cache: KeyValues, number: int) -> Tensor:
        parts = self.inward(layer_norm(x, *self.norm)).view(len(x), 3, self.heads, -1)
        keys, values = cache.put_both(number, parts[:, 1:])
        seen = scaled_dot_product_attention(parts[:, 0].unsqueeze(2), keys, values)
        return self.outward.added(seen.reshape(x.shape), x)

    def crossed(self, x: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> Tensor:
        # Rows that share a context are looked up as if they were its positions.
        asked = self.cross_queries(layer_norm(x, *self.cross_norm))
        asked = asked.view(len(keys), -1, self.heads, keys.shape[3]).transpose(1, 2)
        seen = scaled_dot_product_attention(asked, keys, values, bias)
        return self.cross_outward.added(seen.transpose(1, 2).reshape(x.shape), x)

    def dense(self, x: Tensor) -> Tensor:
        return self.narrow.added(self.widen.bent(layer_norm(x, *self.dense_norm)), x)


def _norm(layer: nn.LayerNorm) -> tuple[list[int], Tensor, Tensor, float]:
    return list(layer.normalized_shape), layer.weight, layer.bias, layer.eps
