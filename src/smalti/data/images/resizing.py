"""Smaller and larger images by area averaging, in whole numbers.

A new pixel is the mean of the area that it covers, parts of pixels by their share, rounded to
the nearest integer (halves to the even one). Sums are whole numbers, so the result is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from smalti.data.images.collection import Images
from smalti.errors import require

# So many numbers are worked on at a time, which bounds the memory beside the images.
BLOCK = 1 << 22


def resized(images: Images, size: int | tuple[int, int]) -> Images:
    """The images at another size.

    Args:
        images: Of any size.
        size: Height and width; one number for both where images are square.
    """
    _, height, width = images.shape
    if isinstance(size, int):
        require(
            height == width,
            f"one size is for square images, got {height} x {width}; give (height, width)",
        )
        size = (size, size)
    require(
        isinstance(size, Sequence)
        and len(size) == 2
        and all(isinstance(side, int) and side >= 1 for side in size),
        f"expected a height and a width of at least 1, got {size!r}",
    )
    return replace(images, pixels=averaged(images.pixels, *size))


def squared(pixels: Tensor, size: int) -> Tensor:
    """The middle square of images ``(n, channels, height, width)``, resized to ``size``."""
    height, width = pixels.shape[-2:]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return averaged(pixels[..., top : top + side, left : left + side], size, size)


def averaged(pixels: Tensor, height: int, width: int) -> Tensor:
    """Images ``(n, channels, height, width)`` at another height and width."""
    old_height, old_width = pixels.shape[-2:]
    if (old_height, old_width) == (height, width):
        return pixels.contiguous()
    rows = _overlaps(old_height, height).to(pixels.device)
    columns = _overlaps(old_width, width).to(pixels.device).T
    area = old_height * old_width
    made = pixels.new_empty((*pixels.shape[:2], height, width))
    step = max(1, BLOCK // (pixels.shape[1] * max(area, height * width)))
    for start in range(0, len(pixels), step):
        # Whole numbers below 2**53: float64 keeps every digit until the division.
        sums = rows @ pixels[start : start + step].double() @ columns
        made[start : start + step] = (sums / area).round()
    return made


def _overlaps(old: int, new: int) -> Tensor:
    """How much of each old pixel each new one covers ``(new, old)``, in units of 1/new."""
    starts, others = torch.arange(new)[:, None] * old, torch.arange(old) * new
    ends = torch.minimum(starts + old, others + new)
    return (ends - torch.maximum(starts, others)).clamp(min=0).double()
