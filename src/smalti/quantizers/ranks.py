"""Several processes that learn one codebook together.

Every rank calls these at the same places; with one process they do nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.nn.functional import all_reduce as all_reduce_with_gradient


def many() -> bool:
    """Whether more than one process takes part."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def sum_over_ranks(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Each tensor summed over all ranks, in one exchange."""
    if not many():
        return list(tensors)
    joined = torch.cat([tensor.flatten() for tensor in tensors])
    dist.all_reduce(joined)
    pieces = joined.split([tensor.numel() for tensor in tensors])
    return [piece.view_as(tensor) for piece, tensor in zip(pieces, tensors, strict=True)]


def join_over_ranks(x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """The vectors ``(parts, n, dim)`` of all ranks in rank order, and their mask ``(n,)``."""
    if not many():
        return x, mask
    world = dist.get_world_size()
    sizes = [torch.zeros((), dtype=torch.int64, device=x.device) for _ in range(world)]
    dist.all_gather(sizes, torch.tensor(x.shape[1], device=x.device))
    longest = max(int(size) for size in sizes)
    valid = torch.ones(x.shape[1], device=x.device) if mask is None else mask.float()
    rows = torch.zeros(x.shape[0], longest, x.shape[2] + 1, device=x.device)
    rows[:, : x.shape[1], :-1] = x
    rows[:, : x.shape[1], -1] = valid
    everyone = [torch.empty_like(rows) for _ in range(world)]
    dist.all_gather(everyone, rows)
    joined = torch.cat([part[:, : int(n)] for part, n in zip(everyone, sizes, strict=True)], dim=1)
    masks = joined[0, :, -1] > 0.5
    return joined[..., :-1].contiguous(), None if bool(masks.all()) else masks


def agree(tensor: Tensor) -> Tensor:
    """The first rank's value, on every rank: random draws must not tear codebooks apart."""
    if many():
        dist.broadcast(tensor, src=0)
    return tensor


def sum_over_ranks_with_gradient(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Each tensor summed over all ranks; gradients find their way back to each of them."""
    if not many():
        return tensors
    return tuple(all_reduce_with_gradient(tensor) for tensor in tensors)
