"""Attention itself: each query becomes a mean of values, weighted by how well keys fit it."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

# Softmax makes exactly zero of it, and unlike minus infinity it leaves numbers where a whole
# row is hidden. It fits into bfloat16 too.
HIDDEN = -1e30
# Up to so many keys the weights of training are held as a matrix: its backward pass is several
# times faster on a processor than that of the fused kernel, which saves memory instead.
MOST_KEYS_IN_MEMORY = 256


def hiding(mask: Tensor) -> Tensor:
    """A bias ``(batch, 1, 1, length)`` that hides positions where a mask is False.

    Args:
        mask: ``(batch, length)`` bool, True where there is something to see.
    """
    bias = torch.zeros(mask.shape, device=mask.device).masked_fill_(~mask, HIDDEN)
    return bias[:, None, None]


def attend(
    query: Tensor, key: Tensor, value: Tensor, *, causal: bool = False, bias: Tensor | None = None
) -> Tensor:
    """Means of values, ``(batch, heads, queries, width)``.

    Args:
        query: ``(batch, heads, queries, width)``.
        key: ``(batch, heads, keys, width)``.
        value: Likewise.
        causal: Whether a query sees no key later than itself.
        bias: Added to the scores; a shape that ``(batch, heads, queries, keys)`` covers.
    """
    if query.requires_grad and key.shape[2] <= MOST_KEYS_IN_MEMORY:
        scores = (query * (1 / math.sqrt(query.shape[-1]))) @ key.transpose(2, 3)
        if bias is not None:
            scores = scores + bias.to(scores.dtype)
        if causal:
            hidden = later(query.shape[2], key.shape[2], query.device)
            scores = scores.masked_fill(hidden, HIDDEN)
        return scores.softmax(dim=-1) @ value
    if bias is None:
        return functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
    bias = bias.to(query.dtype)
    if causal:
        bias = bias.masked_fill(later(query.shape[2], key.shape[2], query.device), HIDDEN)
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)


def later(queries: int, keys: int, device: torch.device) -> Tensor:
    """Which keys come after which queries, ``(queries, keys)``."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).triu_(1)
