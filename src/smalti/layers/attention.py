"""A causal transformer: full or local attention, and a cache that makes steps cheap.

Reference:
    Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin, "Attention Is All
    You Need", NeurIPS 2017, arXiv:1706.03762, section 3. Parmar, Vaswani, Uszkoreit, Kaiser,
    Shazeer, Ku, Tran, "Image Transformer", ICML 2018, arXiv:1802.05751, section 3.3 (local
    attention in one dimension).

Differs from the paper:
    As :mod:`smalti.layers.transformer` does. Local attention is a window that slides: every
    position sees the same number of positions before it, where the paper's blocks let the first
    of a block see fewer than the last.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from smalti.errors import ShapeError, require
from smalti.layers.key_values import KeyValues
from smalti.layers.lean import hiding_keys
from smalti.layers.transformer import Transformer

# Positions that a cache without a window and without a given length begins with.
FIRST_ROOM = 64


class CausalTransformer(Transformer):
    """A :class:`Transformer` in which no position sees a later one; settings are the same.

    Example:
        >>> layers = CausalTransformer(dim=16, depth=2, heads=4).eval()
        >>> x = torch.randn(3, 10, 16)
        >>> cache = layers.new_cache(3)
        >>> steps = torch.cat([layers.step(item, cache) for item in x.split(1, dim=1)], dim=1)
        >>> torch.allclose(steps, layers(x), atol=1e-5)
        True
    """

    causal: ClassVar[bool] = True

    @torch.no_grad()
    def new_cache(
        self,
        batch: int,
        context: Tensor | None = None,
        *,
        context_mask: Tensor | None = None,
        length: int | None = None,
    ) -> KeyValues:
        """An empty cache, with which ``step`` walks position by position.

        Args:
            batch: How many sequences are walked at the same time.
            context: As for ``forward``; it is read once, here. It may have fewer rows than
                ``batch``, of which then equally many in a row share one.
            context_mask: As for ``forward``.
            length: How many steps are coming. Without it room is made as it is needed.
        """
        rows = batch
        if context is not None and context.dim() == 3 and 0 < len(context) < batch:
            rows = len(context) if batch % len(context) == 0 else batch
        self._check_context(context, rows)
        room = self.window or length or FIRST_ROOM
        shape = (self.depth, batch, 2, self.heads, room, self.dim // self.heads)
        read, bias = [], None
        if context is not None:
            read = self.lean().read(context)
            bias = hiding_keys(context.shape[1], context_mask, context.device)
        return KeyValues(self.norm.weight.new_zeros(shape), self.window, read, bias)

    @torch.no_grad()
    def step(self, x: Tensor, cache: KeyValues) -> Tensor:
        """What ``forward`` gives for the next position, without dropout or gradients.

        Args:
            x: ``(batch, 1, dim)``.
            cache: Of ``new_cache``; it remembers this position.
        """
        require(
            x.shape == (cache.batch, 1, self.dim),
            f"expected one position a sequence, ({cache.batch}, 1, {self.dim}), got "
            f"{tuple(x.shape)}",
            ShapeError,
        )
        return self.lean().step(x[:, 0], cache)[:, None]
