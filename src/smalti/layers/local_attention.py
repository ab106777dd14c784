"""Attention to the latest positions only: time and memory grow with length times window."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def local_attention(query: Tensor, key: Tensor, value: Tensor, window: int) -> Tensor:
    """Attention in which a position sees ``window`` positions, itself the last of them.

    A block of ``window`` positions needs itself and the block before it, and no more.

    Args:
        query: ``(batch, heads, length, width)``.
        key: Likewise.
        value: Likewise.
        window: How many positions are seen, at least 1.
    """
    batch, heads, length, width = query.shape
    blocks = -(-length // window)
    missing = blocks * window - length
    query, key, value = (
        functional.pad(x, (0, 0, 0, missing)).unflatten(2, (blocks, window))
        for x in (query, key, value)
    )
    # Heads and blocks share an axis, so that one mask serves the whole batch.
    seen = functional.scaled_dot_product_attention(
        query.flatten(1, 2),
        _with_block_before(key).flatten(1, 2),
        _with_block_before(value).flatten(1, 2),
        attn_mask=_visible(blocks, window, query.device).repeat(heads, 1, 1)[None],
    )
    return seen.view(batch, heads, blocks * window, width)[:, :, :length]


def _with_block_before(x: Tensor) -> Tensor:
    """``(batch, heads, blocks, window, width)`` with twice the window; zeros come first."""
    before = functional.pad(x, (0, 0, 0, 0, 1, 0))[:, :, :-1]
    return torch.cat([before, x], dim=3)


def _visible(blocks: int, window: int, device: torch.device) -> Tensor:
    """Which positions of its block and the one before each sees, ``(blocks, window, 2 window)``."""
    here = torch.arange(window, device=device)[:, None]
    there = torch.arange(-window, window, device=device)
    visible = (there <= here) & (there > here - window)
    exists = (torch.arange(blocks, device=device)[:, None, None] > 0) | (there >= 0)
    return visible & exists
