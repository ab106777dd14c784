"""Pixels as the bytes of a PNG file, so that findings can hold pictures without other libraries.

Reference: PNG (Portable Network Graphics) Specification, third edition, W3C, 2025.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt

from smalti.errors import ShapeError, require

SIGNATURE = b"\x89PNG\r\n\x1a\n"
# The colour types of grey, of red, green and blue, and of these with a fourth for opacity.
COLOURS = {1: 0, 3: 2, 4: 6}


def png(pixels: npt.NDArray[np.uint8]) -> bytes:
    r"""A PNG file of pixels ``(height, width, channels)``, with 1, 3 or 4 channels.

    Example:
        >>> png(np.zeros((2, 3, 1), np.uint8))[:8]
        b'\x89PNG\r\n\x1a\n'
    """
    require(
        pixels.ndim == 3 and pixels.shape[2] in COLOURS and pixels.dtype == np.uint8,
        f"expected a picture (height, width, 1, 3 or 4) of uint8, got {pixels.shape} of "
        f"{pixels.dtype}",
        ShapeError,
    )
    height, width, channels = pixels.shape
    # Before each row stands a byte that says how it was filtered: not at all.
    rows = np.zeros((height, 1 + width * channels), np.uint8)
    rows[:, 1:] = pixels.reshape(height, width * channels)
    header = struct.pack(">IIBBBBB", width, height, 8, COLOURS[channels], 0, 0, 0)
    data = zlib.compress(rows.tobytes(), 9)
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
    checked = kind + content
    return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))
