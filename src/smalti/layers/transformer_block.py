"""One layer of a transformer: all positions at once, or the next one alone."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from smalti.layers.attending import attend
from smalti.layers.dropout import Dropout
from smalti.layers.local_attention import local_attention


class SelfAttention(nn.Module):
    """Every position looks at all, or at itself and at those before it.

    Args:
        dim: Width of the vectors.
        heads: How many views are taken, each of width ``dim / heads``.
        window: How many positions are seen, itself included; None for all.
        causal: Whether no position sees a later one.
    """

    def __init__(self, dim: int, heads: int, window: int | None, causal: bool = True) -> None:
        super().__init__()
        self.heads, self.window, self.causal = heads, window, causal
        self.norm = nn.LayerNorm(dim)
        self.inward = nn.Linear(dim, 3 * dim)
        self.outward = nn.Linear(dim, dim)

    def forward(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """All positions at once, ``(batch, length, dim)``; the bias hides some of them."""
        query, key, value = _split(self.inward(self.norm(x)), 3, self.heads)
        if self.window is None or x.shape[1] <= self.window:
            seen = attend(query, key, value, causal=self.causal, bias=bias)
        else:
            seen = local_attention(query, key, value, self.window)
        out: Tensor = self.outward(_merge(seen))
        return out


class CrossAttention(nn.Module):
    """Every position looks at the whole context.

    Args:
        dim: Width of the vectors.
        heads: How many views are taken.
        context_dim: Width of the context's vectors.
    """

    def __init__(self, dim: int, heads: int, context_dim: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(dim)
        self.queries = nn.Linear(dim, dim)
        self.inward = nn.Linear(context_dim, 2 * dim)
        self.outward = nn.Linear(dim, dim)

    def read(self, context: Tensor) -> tuple[Tensor, Tensor]:
        """The keys and values of a context ``(batch, length, context_dim)``."""
        key, value = _split(self.inward(context), 2, self.heads)
        return key, value

    def forward(
        self, x: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None = None
    ) -> Tensor:
        """What positions ``(batch, length, dim)`` find in a context that was read."""
        (query,) = _split(self.queries(self.norm(x)), 1, self.heads)
        seen = attend(query, keys, values, bias=bias)
        out: Tensor = self.outward(_merge(seen))
        return out


class Dense(nn.Module):
    """Two dense layers at each position by itself.

    Args:
        dim: Width of the vectors.
        ratio: How many times wider the hidden layer is.
    """

    def __init__(self, dim: int, ratio: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.widen = nn.Linear(dim, ratio * dim)
        self.narrow = nn.Linear(ratio * dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """Vectors ``(..., dim)`` in and out."""
        out: Tensor = self.narrow(functional.gelu(self.widen(self.norm(x))))
        return out


class Block(nn.Module):
    """One layer: self-attention, attention to the context where there is one, dense layers.

    Args:
        dim: Width of the vectors.
        heads: How many views attention takes.
        ratio: How many times wider the hidden dense layer is.
        dropout: Share of each part's output that is dropped in training.
        window: How many positions are seen; None for all.
        context_dim: Width of the context's vectors; None without a context.
        causal: Whether no position sees a later one.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        ratio: int,
        dropout: float,
        window: int | None,
        context_dim: int | None,
        causal: bool,
    ) -> None:
        super().__init__()
        self.attention = SelfAttention(dim, heads, window, causal)
        self.cross = None if context_dim is None else CrossAttention(dim, heads, context_dim)
        self.dense = Dense(dim, ratio)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        context: Tensor | None,
        bias: Tensor | None = None,
        context_bias: Tensor | None = None,
    ) -> Tensor:
        """All positions at once, ``(batch, length, dim)``; biases hide some of what is seen."""
        x = x + self.dropout(self.attention(x, bias))
        if self.cross is not None and context is not None:
            x = x + self.dropout(self.cross(x, *self.cross.read(context), context_bias))
        out: Tensor = x + self.dropout(self.dense(x))
        return out


def _split(x: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
    """``(batch, length, parts * dim)`` as parts ``(batch, heads, length, width)``."""
    batch, length, dim = x.shape
    views = x.view(batch, length, parts, heads, dim // (parts * heads))
    return views.permute(2, 0, 3, 1, 4).unbind()


def _merge(x: Tensor) -> Tensor:
    """``(batch, heads, length, width)`` as ``(batch, length, dim)``."""
    return x.transpose(1, 2).flatten(2)
