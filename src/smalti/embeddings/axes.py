"""Axes along which rows are cut into parts: every part gets about as much to tell."""

from __future__ import annotations

import torch
from torch import Tensor


def even_axes(table: Tensor, weights: Tensor, parts: int) -> Tensor:
    """Principal axes ``(dim, dim)``, dealt out so that parts have equal products of variances.

    Rows of the result are the axes, part after part. Joining neighbouring parts keeps them
    even, so that axes for many parts also serve fewer.

    Args:
        table: ``(rows, dim)``.
        weights: ``(rows,)`` how much each row counts.
        parts: How many parts of equal width.
    """
    scatter = (table * weights[:, None]).T @ table
    variances, axes = torch.linalg.eigh(scatter.double())
    dim = table.shape[1]
    room = torch.full((parts,), dim // parts)
    loads = torch.zeros(parts, dtype=torch.float64)
    dealt: list[list[int]] = [[] for _ in range(parts)]
    for axis in range(dim - 1, -1, -1):
        open_parts = torch.where(room > 0, loads, torch.inf)
        part = int(open_parts.argmin())
        dealt[part].append(axis)
        loads[part] += torch.log(variances[axis].clamp(min=1e-12))
        room[part] -= 1
    order = [axis for group in dealt for axis in group]
    even: Tensor = axes[:, order].T.float().contiguous()
    return even
