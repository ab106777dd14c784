"""A whole set of images as grids of codes."""

from __future__ import annotations

import torch
from torch import Tensor

from smalti.autoencoders import Autoencoder
from smalti.priors import Level
from smalti.recipes.images.batching import blocks


def code_levels(autoencoder: Autoencoder, height: int, width: int) -> tuple[Level, ...]:
    """What the codes of images of that size look like, top first; nothing where there are none."""
    if not has_codes(autoencoder):
        return ()
    levels = zip(autoencoder.grids(height, width), autoencoder.code_sizes, strict=True)
    return tuple(Level(grid, sizes) for grid, sizes in levels)


def has_codes(autoencoder: Autoencoder) -> bool:
    """Whether every level has codes; Gaussian and identity bottlenecks have none."""
    return len(autoencoder.code_sizes) > 0 and all(autoencoder.code_sizes)


@torch.no_grad()
def encode_all(autoencoder: Autoencoder, pixels: Tensor) -> tuple[Tensor, ...]:
    """The codes of many images, a grid of each level, top first, in as few bytes as they need.

    Args:
        autoencoder: In evaluation mode.
        pixels: Images ``(n, channels, height, width)``.
    """
    device = next(autoencoder.parameters()).device
    types = [_smallest(max(sizes)) for sizes in autoencoder.code_sizes]
    found: list[list[Tensor]] = [[] for _ in types]
    for block in blocks(pixels, "encoding"):
        codes = autoencoder.encode(block.to(device))
        for kept, grid, kind in zip(found, codes, types, strict=True):
            kept.append(grid.to("cpu", kind))
    return tuple(torch.cat(grids) for grids in found)


def _smallest(size: int) -> torch.dtype:
    """The smallest type that holds codes below ``size``."""
    kinds = (torch.uint8, torch.int16, torch.int32)
    return next((kind for kind in kinds if size - 1 <= torch.iinfo(kind).max), torch.int64)
