"""A causal transformer: full or local attention, and a cache that makes steps cheap.

Reference:
    Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin, "Attention Is All
    You Need", NeurIPS 2017, arXiv:1706.03762, section 3. Parmar, Vaswani, Uszkoreit, Kaiser,
    Shazeer, Ku, Tran, "Image Transformer", ICML 2018, arXiv:1802.05751, section 3.3 (local
    attention in one dimension).

Differs from the paper:
    Norms stand before the parts of a layer, and one after the last layer. Local attention is a
    window that slides: every position sees the same number of positions before it, where the
    paper's blocks let the first of a block see fewer than the last.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from smalti.errors import ShapeError, require
from smalti.layers.key_values import KeyValues
from smalti.layers.transformer_block import Block

# Positions that a cache without a window and without a given length begins with.
FIRST_ROOM = 64


class CausalTransformer(nn.Module):
    """Layers of attention in which no position sees a later one.

    Positions are not marked: whoever calls adds vectors that tell them apart.

    Args:
        dim: Width of the vectors, in and out.
        depth: How many layers.
        heads: How many views attention takes; must divide ``dim``.
        ratio: How many times wider the hidden dense layers are.
        dropout: Share of each part's output that is dropped in training.
        window: A position sees so many positions, itself the last of them; None for all.
        context_dim: Width of the context's vectors, which every layer then attends to.

    Example:
        >>> layers = CausalTransformer(dim=16, depth=2, heads=4).eval()
        >>> x = torch.randn(3, 10, 16)
        >>> cache = layers.new_cache(3)
        >>> steps = torch.cat([layers.step(item, cache) for item in x.split(1, dim=1)], dim=1)
        >>> torch.allclose(steps, layers(x), atol=1e-5)
        True
    """

    def __init__(
        self,
        dim: int,
        depth: int,
        heads: int,
        *,
        ratio: int = 4,
        dropout: float = 0.0,
        window: int | None = None,
        context_dim: int | None = None,
    ) -> None:
        super().__init__()
        sizes = {"dim": dim, "depth": depth, "heads": heads, "ratio": ratio}
        optional = {"window": window, "context_dim": context_dim}
        sizes |= {name: size for name, size in optional.items() if size is not None}
        for name, size in sizes.items():
            whole = isinstance(size, int) and not isinstance(size, bool)
            require(whole and size >= 1, f"{name} must be a whole number from 1 on, got {size!r}")
        require(dim % heads == 0, f"expected heads to divide dim, got {heads} and {dim}")
        require(0 <= dropout < 1, f"dropout must be a number >= 0 and < 1, got {dropout!r}")
        self.dim, self.depth, self.heads, self.ratio = dim, depth, heads, ratio
        self.dropout, self.window, self.context_dim = dropout, window, context_dim
        self.blocks = nn.ModuleList(
            Block(dim, heads, ratio, dropout, window, context_dim) for _ in range(depth)
        )
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """All positions at once.

        Args:
            x: ``(batch, length, dim)``.
            context: ``(batch, any length, context_dim)``, if ``context_dim`` was given.
        """
        require(
            x.dim() == 3 and x.shape[-1] == self.dim,
            f"expected (batch, length, {self.dim}), got {tuple(x.shape)}",
            ShapeError,
        )
        self._check_context(context, len(x))
        for block in self.blocks:
            x = block(x, context)
        out: Tensor = self.norm(x)
        return out

    @torch.no_grad()
    def new_cache(
        self, batch: int, context: Tensor | None = None, *, length: int | None = None
    ) -> KeyValues:
        """An empty cache, with which ``step`` walks position by position.

        Args:
            batch: How many sequences are walked at the same time.
            context: As for ``forward``; it is read once, here.
            length: How many steps are coming. Without it room is made as it is needed.
        """
        self._check_context(context, batch)
        room = self.window or length or FIRST_ROOM
        shape = (batch, self.heads, room, self.dim // self.heads)
        keys = [self.norm.weight.new_zeros(shape) for _ in range(self.depth)]
        crossing = [block.cross for block in self.layers() if block.cross is not None]
        read = [] if context is None else [cross.read(context) for cross in crossing]
        return KeyValues(keys, self.window, read)

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
        cache.make_room()
        for layer, block in enumerate(self.layers()):
            x = block.step(x, cache, layer)
        cache.position += 1
        out: Tensor = self.norm(x)
        return out

    def layers(self) -> list[Block]:
        """The blocks in order."""
        return [block for block in self.blocks if isinstance(block, Block)]

    def _check_context(self, context: Tensor | None, batch: int) -> None:
        if self.context_dim is None:
            require(
                context is None, "these layers take no context: give context_dim to attend to one"
            )
            return
        require(
            context is not None
            and context.dim() == 3
            and (context.shape[0], context.shape[2]) == (batch, self.context_dim),
            f"expected a context ({batch}, any length, {self.context_dim}), got "
            f"{None if context is None else tuple(context.shape)}",
            ShapeError,
        )
