"""Many images in one picture, for people to look at."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from smalti.errors import ShapeError, require

PAPER = 255


def grid_picture(pixels: Tensor, columns: int, *, bits: int = 8, gap: int = 2) -> Tensor:
    """A picture ``(height, width, 3)`` uint8 of images side by side on white, row by row.

    Args:
        pixels: Images ``(n, channels, height, width)`` of whole numbers, 1 or 3 channels.
        columns: How many stand in a row; fewer where there are fewer.
        bits: Of a pixel's channel.
        gap: Pixels between images and around them.
    """
    require(columns >= 1 and gap >= 0, f"expected columns >= 1, gap >= 0, got {columns}, {gap}")
    images = as_bytes(pixels, bits)
    require(len(images) > 0, "expected at least one image for a picture, got none", ShapeError)
    columns = min(columns, len(images))
    rows = -(-len(images) // columns)
    _, _, height, width = images.shape
    cells = images.new_full((rows * columns, 3, height, width), PAPER)
    cells[: len(images)] = images
    cells = pad(cells, (gap, 0, gap, 0), value=PAPER)
    picture = (
        cells.view(rows, columns, 3, height + gap, width + gap)
        .permute(0, 3, 1, 4, 2)
        .reshape(rows * (height + gap), columns * (width + gap), 3)
    )
    return pad(picture, (0, 0, 0, gap, 0, gap), value=PAPER)


def as_bytes(pixels: Tensor, bits: int) -> Tensor:
    """Images ``(n, channels, height, width)`` of so many bits stretched to 0..255, on the CPU."""
    require(
        pixels.ndim == 4 and pixels.shape[1] in {1, 3} and not pixels.is_floating_point(),
        "expected images (n, 1 or 3 channels, height, width) of whole numbers, "
        f"got {tuple(pixels.shape)} of {pixels.dtype}",
        ShapeError,
    )
    pixels = pixels.detach().cpu()
    if bits == 8:
        return pixels.to(torch.uint8)
    stretched: Tensor = (pixels.double() * (255 / (2**bits - 1))).round()
    return stretched.to(torch.uint8)
