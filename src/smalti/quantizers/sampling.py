"""Random draws of vectors: from one batch, and from a stream of batches."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from smalti.errors import DataError, require

# How far a repeated draw moves, in standard deviations of each coordinate: enough to
# tell two codewords apart, too little to leave the data.
JITTER = 0.01


def draw(x: Tensor, mask: Tensor | None, amount: int) -> Tensor:
    """Draw ``amount`` distinct vectors from each part of ``x``, as far as there are so many.

    Args:
        x: ``(parts, n, dim)`` with n >= 1.
        mask: ``(n,)`` bool or None; only True positions are drawn.
        amount: How many to draw. Draws beyond the number of vectors repeat, jittered.

    Returns:
        ``(parts, amount, dim)``.
    """
    parts, n, dim = x.shape
    keys = torch.rand(parts, n, device=x.device)
    slots = torch.arange(amount, device=x.device)
    if mask is None:
        available = torch.full((), n, device=x.device)
    else:
        keys = keys.masked_fill(~mask, 2.0)
        available = mask.sum().clamp(min=1)
    if amount < n:
        order = keys.topk(amount, dim=1, largest=False, sorted=True).indices
    else:
        order = keys.argsort(dim=1)
    picks = order.gather(1, (slots % available).expand(parts, amount))
    drawn = x.gather(1, picks.unsqueeze(-1).expand(parts, amount, dim))
    if mask is None and amount <= n:
        return drawn
    spread = (x - x.mean(dim=1, keepdim=True)).square().mean(dim=1, keepdim=True).sqrt()
    noise = torch.randn(drawn.shape, device=x.device) * (JITTER * spread)
    return torch.where((slots >= available)[:, None], drawn + noise, drawn)


def collect(batches: Iterable[Tensor], dim: int, codebook_size: int) -> Tensor:
    """A uniform sample ``(n, dim)`` of a stream, bounded in memory.

    Args:
        batches: Tensors ``(..., dim)``.
        dim: Width of the vectors.
        codebook_size: The largest codebook that will start from the sample.
    """
    limit = max(16 * codebook_size, 65_536)
    kept = torch.empty(0, dim)
    keys = torch.empty(0)
    for batch in batches:
        rows = batch.detach().reshape(-1, dim).float()
        kept = torch.cat([kept.to(rows.device), rows])
        keys = torch.cat([keys.to(rows.device), torch.rand(len(rows), device=rows.device)])
        if len(kept) > limit:
            # The lowest keys of all rows so far: every row has had the same chance.
            keys, order = keys.topk(limit, largest=False, sorted=False)
            kept = kept[order]
    require(len(kept) > 0, "expected at least one vector to start from, got none", DataError)
    return kept
