"""What other formats without loss take for the same images: PNG and WebP, a file an image."""

from __future__ import annotations

import io

import numpy as np
from torch import Tensor

from smalti.data.images.extras import pillow
from smalti.data.images.writing import stretched
from smalti.progress import progress_bar

# As small as Pillow can make them. ``exact`` keeps colours also where nobody would see them.
PNG = {"format": "PNG", "optimize": True}
WEBP = {"format": "WEBP", "lossless": True, "quality": 100, "method": 6, "exact": True}
# The longest side of a WebP file.
LONGEST = 16383


def other_bytes(pixels: Tensor, bits: int) -> dict[str, int | None]:
    """Bytes of all images as ``"png"`` and as ``"webp"``; None where a format can't hold them.

    Args:
        pixels: Images ``(n, channels, height, width)`` of whole numbers, 1 or 3 channels.
        bits: Of a subpixel. Below 8 values are stretched to bytes, as in files of pictures.
    """
    fits = bits <= 8 and max(pixels.shape[2:]) <= LONGEST
    totals: dict[str, int | None] = {"png": 0, "webp": 0 if fits else None}
    with progress_bar("comparing with PNG and WebP", "images", total=len(pixels)) as advance:
        for image in stretched(pixels, bits):
            array = image.permute(1, 2, 0).squeeze(-1).numpy()
            picture = pillow("Image").fromarray(
                np.ascontiguousarray(array, dtype=np.uint8 if bits <= 8 else np.uint16)
            )
            for name, settings in (("png", PNG), ("webp", WEBP)):
                known = totals[name]
                if known is not None:
                    file = io.BytesIO()
                    picture.save(file, **settings)
                    totals[name] = known + len(file.getvalue())
            advance(1)
    return totals
