"""One position at a time through the layers of a transformer, as lean as torch allows.

A step of one sentence takes less time in its matrix products than around them, so that what a
module does on each call would count: here weights are read once a sequence, vectors have no
length axis, and nothing is checked.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn.functional import gelu, layer_norm, linear, scaled_dot_product_attention

from smalti.layers.key_values import KeyValues
from smalti.layers.transformer_block import Block

Weights = tuple[Tensor, Tensor]


class Steps:
    """The weights of all layers, ready to walk with.

    Args:
        blocks: The layers.
        norm: What comes after the last.
    """

    def __init__(self, blocks: Sequence[Block], norm: nn.LayerNorm) -> None:
        self.layers = [_Layer(block) for block in blocks]
        self.norm, self.shape, self.eps = _weights(norm), norm.normalized_shape, norm.eps

    def __call__(self, x: Tensor, cache: KeyValues) -> Tensor:
        """The next position of every row, ``(rows, dim)``; the cache remembers it."""
        cache.make_room()
        for number, layer in enumerate(self.layers):
            x = layer(x, cache, number)
        cache.position += 1
        return layer_norm(x, self.shape, *self.norm, self.eps)


class _Layer:
    def __init__(self, block: Block) -> None:
        attention, cross, dense = block.attention, block.cross, block.dense
        self.heads = attention.heads
        self.shape, self.eps = attention.norm.normalized_shape, attention.norm.eps
        self.norm = _weights(attention.norm)
        self.inward, self.outward = _weights(attention.inward), _weights(attention.outward)
        self.cross: tuple[Weights, ...] = ()
        if cross is not None:
            parts = (cross.norm, cross.queries, cross.outward)
            self.cross = tuple(_weights(part) for part in parts)
        self.dense_norm = _weights(dense.norm)
        self.widen, self.narrow = _weights(dense.widen), _weights(dense.narrow)

    def __call__(self, x: Tensor, cache: KeyValues, number: int) -> Tensor:
        rows, dim = x.shape
        heads, shape, eps = self.heads, self.shape, self.eps
        made = linear(layer_norm(x, shape, *self.norm, eps), *self.inward)
        parts = made.view(rows, 3, heads, dim // heads)
        keys, values = cache.put_both(number, parts[:, 1:])
        seen = scaled_dot_product_attention(parts[:, 0].unsqueeze(2), keys, values)
        x = linear(seen.reshape(rows, dim), *self.outward).add_(x)
        if self.cross:
            norm, queries, outward = self.cross
            keys, values = cache.context[number]
            # Rows that share a context are looked up as if they were its positions.
            asked = linear(layer_norm(x, shape, *norm, eps), *queries)
            asked = asked.view(len(keys), -1, heads, dim // heads).transpose(1, 2)
            seen = scaled_dot_product_attention(asked, keys, values, cache.context_bias)
            x = linear(seen.transpose(1, 2).reshape(rows, dim), *outward).add_(x)
        hidden = gelu(linear(layer_norm(x, shape, *self.dense_norm, eps), *self.widen))
        return linear(hidden, *self.narrow).add_(x)


def _weights(part: nn.Linear | nn.LayerNorm) -> Weights:
    return part.weight, part.bias
