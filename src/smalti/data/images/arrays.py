"""Arrays of pixels and labels as files have them: checked, and laid out channels first."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from smalti.errors import DataError, require

Array = np.ndarray[Any, np.dtype[Any]]
CHANNELS = (1, 3)
# Of these types the bits are known; of other whole numbers the largest one tells them.
BITS = {"bool": 1, "uint8": 8, "uint16": 16}


def as_pixels(array: Array, where: str) -> tuple[Tensor, int]:
    """Pixels ``(n, channels, height, width)`` and their bits.

    Args:
        array: ``(n, height, width)``, ``(n, height, width, channels)`` or, where that can't
            be, ``(n, channels, height, width)``.
        where: The file and the array, for messages.
    """
    array, bits = _exact(_channels_first(array, where), where)
    return torch.from_numpy(np.require(array, requirements=["C", "W"])), bits


def as_labels(labels: Array, count: int, where: str) -> Tensor:
    """Labels ``(n,)`` int64 of ``count`` images."""
    column = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    require(
        column.ndim == 1 and column.dtype.kind in "ui",
        f"expected labels (n,) of whole numbers in {where}, "
        f"got {labels.shape} of {labels.dtype}; number the classes from 0 on",
        DataError,
    )
    require(
        len(column) == count,
        f"expected a label for each of {count} images in {where}, got {len(column)} labels; "
        "pixels and labels are of different sets, or one of them was cut",
        DataError,
    )
    return torch.from_numpy(column.astype(np.int64))


def _channels_first(array: Array, where: str) -> Array:
    require(
        array.ndim in {3, 4} and array.size > 0,
        f"expected pixels (n, height, width) or (n, height, width, channels) in {where}, "
        f"got {array.shape}",
        DataError,
    )
    if array.ndim == 3:
        return array[:, None]
    if array.shape[-1] in CHANNELS:
        return array.transpose(0, 3, 1, 2)
    require(
        array.shape[1] in CHANNELS,
        f"expected 1 or 3 channels in {where}, got {array.shape[-1]} of shape {array.shape}; "
        "keep grey or red, green and blue",
        DataError,
    )
    return array


def _exact(array: Array, where: str) -> tuple[Array, int]:
    """The same numbers as uint8 or int32, and their bits; nothing is rounded."""
    if array.dtype.kind == "f":
        raise DataError(
            f"expected pixels that are whole numbers in {where}, got {array.dtype.name} "
            f"from {array.min()} to {array.max()}; write the integers of the source, "
            "for example (255 * x).round().astype('uint8')"
        )
    require(
        array.dtype.kind in "bui",
        f"expected pixels that are whole numbers in {where}, got {array.dtype}",
        DataError,
    )
    low, high = int(array.min()), int(array.max())
    require(
        low >= 0 and high < 1 << 16,
        f"expected pixels from 0 to 65535 in {where}, got {low} to {high}",
        DataError,
    )
    bits = BITS.get(array.dtype.name, 8 if high < 1 << 8 else 16)
    return array.astype(np.uint8 if bits <= 8 else np.int32, copy=False), bits
