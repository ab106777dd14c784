"""Sums of vectors by their codes, for a stack of codebooks, without a one-hot matrix."""

from __future__ import annotations

import torch
from torch import Tensor


def flat_codes(codes: Tensor, size: int) -> Tensor:
    """Codes ``(parts, n)`` as rows of the stacked codebooks ``(parts * size, dim)``."""
    if codes.shape[0] == 1:
        return codes.reshape(-1)
    offsets = size * torch.arange(codes.shape[0], device=codes.device)
    return (codes + offsets[:, None]).reshape(-1)


def count_by_code(codes: Tensor, size: int, mask: Tensor | None = None) -> Tensor:
    """How often each code was chosen, ``(parts, size)`` float32."""
    parts, n = codes.shape
    counts = torch.zeros(parts * size, device=codes.device)
    ones = torch.ones(n, device=codes.device) if mask is None else mask.float()
    return counts.index_add_(0, flat_codes(codes, size), ones.repeat(parts)).view(parts, size)


def sum_by_code(
    x: Tensor, codes: Tensor, size: int, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Counts ``(parts, size)`` and sums ``(parts, size, dim)`` of the vectors of each code."""
    parts, n, dim = x.shape
    if mask is not None:
        x = x * mask.unsqueeze(-1)
    sums = x.new_zeros(parts * size, dim)
    sums.index_add_(0, flat_codes(codes, size), x.reshape(parts * n, dim))
    return count_by_code(codes, size, mask), sums.view(parts, size, dim)
