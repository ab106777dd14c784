"""A transformer: layers of attention among positions, and to a context where there is one.

Reference:
    Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin, "Attention Is All
    You Need", NeurIPS 2017, arXiv:1706.03762, section 3.

Differs from the paper:
    Norms stand before the parts of a layer, and one after the last layer; the hidden units are
    GELU. Positions are not marked: whoever calls adds vectors that tell them apart.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from smalti.errors import ShapeError, require
from smalti.layers.attending import hiding
from smalti.layers.lean import Lean
from smalti.layers.remade import Remade
from smalti.layers.transformer_block import Block


class Transformer(nn.Module):
    """Layers in which every position sees all others.

    Args:
        dim: Width of the vectors, in and out.
        depth: How many layers.
        heads: How many views attention takes; must divide ``dim``.
        ratio: How many times wider the hidden dense layers are.
        dropout: Share of each part's output that is dropped in training.
        window: Of :class:`~smalti.layers.attention.CausalTransformer` alone: a position sees so
            many positions, itself the last of them; None for all.
        context_dim: Width of the context's vectors, which every layer then attends to.

    Example:
        >>> import torch
        >>> layers = Transformer(dim=16, depth=2, heads=4).eval()
        >>> x, mask = torch.randn(1, 5, 16), torch.tensor([[True, True, True, False, False]])
        >>> torch.allclose(layers(x, mask=mask)[:, :3], layers(x[:, :3]), atol=1e-5)
        True
    """

    causal: ClassVar[bool] = False
    """Whether no position sees a later one."""

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
        require(self.causal or window is None, "only causal layers have a window")
        self.dim, self.depth, self.heads, self.ratio = dim, depth, heads, ratio
        self.dropout, self.window, self.context_dim = dropout, window, context_dim
        self.blocks = nn.ModuleList(
            Block(dim, heads, ratio, dropout, window, context_dim, self.causal)
            for _ in range(depth)
        )
        self.norm = nn.LayerNorm(dim)
        self._lean: Remade[Lean] = Remade()

    def forward(
        self,
        x: Tensor,
        context: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        context_mask: Tensor | None = None,
    ) -> Tensor:
        """All positions at once.

        Args:
            x: ``(batch, length, dim)``.
            context: ``(batch, any length, context_dim)``, if ``context_dim`` was given.
            mask: ``(batch, length)`` bool, False where there is padding that nobody sees.
            context_mask: Likewise for the context.
        """
        require(
            x.dim() == 3 and x.shape[-1] == self.dim,
            f"expected (batch, length, {self.dim}), got {tuple(x.shape)}",
            ShapeError,
        )
        require(self.window is None or mask is None, "layers with a window take no mask")
        self._check_context(context, len(x))
        bias = None if mask is None else hiding(mask)
        context_bias = None if context_mask is None else hiding(context_mask)
        for block in self.blocks:
            x = block(x, context, bias, context_bias)
        out: Tensor = self.norm(x)
        return out

    def lean(self, *, half: bool = False) -> Lean:
        """The same layers for inference, where every microsecond counts: nothing is checked.

        They are made anew when weights have changed, and kept otherwise.

        Args:
            half: Whether dense layers round to bfloat16 where the processor is quicker with it.
        """
        return self._lean.get(half, lambda: Lean(self.layers(), self.norm, half), self)

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
