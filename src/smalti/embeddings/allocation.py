"""Bytes for rows by what they are worth: the best split of a table into a few tiers.

Rows sorted by importance are cut into tiers, each with its own way of storing a row. The
loss that is minimised is the sum over rows of importance times expected distortion.

Reference: Shoham, Gersho, "Efficient Bit Allocation for an Arbitrary Set of Quantizers",
IEEE TASSP 36(9), 1988: the allocation problem.

Differs from the paper: tiers follow the order of importance, so that one of two cuts is
given by the budget and the other can be tried everywhere; a tier's codebooks cost too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor

# Places tried for the first of two cuts, evenly spaced in the logarithm.
CUTS = 96


@dataclass(frozen=True)
class Storage:
    """One way to store rows: what a row costs, what the tier costs, what a row loses."""

    name: str
    row_bytes: float
    fixed_bytes: float
    distortion: float


@dataclass(frozen=True)
class Allocation:
    """Tiers from the most important rows down: how each is stored, how many rows it has."""

    tiers: tuple[tuple[Storage, int], ...]
    loss: float
    total_bytes: float


def allocate(
    importance: Tensor,
    storages: Sequence[Storage],
    budget: float,
    tiers: int = 3,
) -> Allocation | None:
    """The split with the least expected loss within ``budget`` bytes.

    Args:
        importance: ``(rows,)`` what a unit of distortion of each row costs.
        storages: The ways to store a tier.
        budget: The most bytes, codebooks included.
        tiers: How many tiers at most, 1 to 3.

    Returns:
        None when no storage fits.

    Example:
        >>> fine, rough = Storage("fine", 4.0, 0.0, 0.0), Storage("rough", 1.0, 0.0, 1.0)
        >>> best = allocate(torch.tensor([5.0, 1.0, 1.0, 1.0]), [fine, rough], 7.0)
        >>> [(storage.name, rows) for storage, rows in best.tiers]
        [('fine', 1), ('rough', 3)]
    """
    ranked = importance.double().sort(descending=True).values
    worth = torch.cat([ranked.new_zeros(1), ranked.cumsum(0)])
    # From fine to coarse: coarser storage for more important rows can't be right.
    ordered = sorted(storages, key=lambda storage: -storage.row_bytes)
    found = [
        allocation
        for count in range(1, tiers + 1)
        for chosen in combinations(ordered, count)
        # Of two storages that cost the same a row, one is the better for every row.
        if len({storage.row_bytes for storage in chosen}) == count
        and (allocation := _best_cuts(worth, chosen, budget)) is not None
    ]
    return min(found, key=lambda allocation: allocation.loss, default=None)


def _best_cuts(worth: Tensor, chosen: Sequence[Storage], budget: float) -> Allocation | None:
    """The best cuts between given storages, from fine to coarse.

    The last cut follows from the others: a finer storage for more rows always loses less,
    so it lies where the budget ends.
    """
    rows = len(worth) - 1
    left = budget - sum(s.fixed_bytes for s in chosen) - rows * chosen[-1].row_bytes
    if left < 0:
        return None
    first = torch.zeros(1, dtype=torch.int64)
    if len(chosen) == 3:
        steps = torch.logspace(0, math.log10(rows), CUTS, dtype=torch.float64)
        first = torch.cat([first, torch.unique(steps.long().clamp(max=rows))])
    if len(chosen) == 1:
        edges = torch.tensor([[0, rows]])
    else:
        *upper, finer, coarser = chosen
        spent = sum((s.row_bytes - finer.row_bytes) * first for s in upper)
        room = (left - spent) / (finer.row_bytes - coarser.row_bytes)
        last = torch.as_tensor(room, dtype=torch.float64).floor().long().clamp(max=rows)
        fits = last >= first
        if not bool(fits.any()):
            return None
        first, last = first[fits], last.expand(len(first))[fits]
        zero = torch.zeros_like(first)
        inner = [first, last] if upper else [last]
        edges = torch.stack([zero, *inner, torch.full_like(zero, rows)], dim=1)
    gains = worth[edges[:, 1:]] - worth[edges[:, :-1]]
    losses = gains @ torch.tensor([s.distortion for s in chosen], dtype=torch.float64)
    best = int(losses.argmin())
    sizes = (edges[best, 1:] - edges[best, :-1]).tolist()
    if 0 in sizes:
        return None
    total = sum(s.fixed_bytes + s.row_bytes * size for s, size in zip(chosen, sizes, strict=True))
    return Allocation(tuple(zip(chosen, sizes, strict=True)), float(losses[best]), total)
