"""Picture files (PNG, JPEG and others that Pillow knows) as exact pixels of one size.

Grey stays grey, unless colour pictures stand beside it: then all are red, green and blue. What
would lose something (transparency, CMYK, 16 bits of colour) is refused, not converted.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from smalti.data.images.extras import pillow
from smalti.data.images.resizing import squared
from smalti.errors import DataError, SmaltiError, require
from smalti.progress import progress_bar

SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pbm", ".pgm", ".ppm"}
)
# In the name of a layout: 16 bits a channel, in some order of bytes.
DEEP = re.compile(r";16[BLN]")
# Fewer are read before anyone could look at a bar.
MANY = 200


def decode(
    pictures: Iterable[tuple[str, Path | bytes]], count: int, size: int | None = None
) -> tuple[Tensor, int]:
    """Pixels ``(count, channels, height, width)`` and their bits.

    Args:
        pictures: For each, what to call it in messages, and its file or its bytes.
        count: How many there are.
        size: Where given, each picture's middle square is resized to it. Without it all
            pictures must have one size.
    """
    stack: Tensor | None = None
    first, first_bits, coloured = "", 0, False
    shown = None if count >= MANY else False
    with progress_bar("reading pictures", "pictures", count, shown) as advance:
        for place, (name, content) in enumerate(pictures):
            pixels, bits = _pixels(name, content)
            if size is not None:
                pixels = squared(pixels[None], size)[0]
            if stack is None:
                stack = _room(count, pixels)
                first, first_bits = name, bits
            _require_alike(stack, first_bits, first, pixels, bits, name)
            stack[place] = pixels  # Grey goes to all three channels.
            coloured = coloured or len(pixels) == 3
            advance(1)
    if stack is None:
        raise DataError("expected at least one picture, got none")
    return stack if coloured else stack[:, :1].contiguous(), first_bits


def _room(count: int, pixels: Tensor) -> Tensor:
    """Space for so many pictures like this one, with three channels."""
    shape = (count, 3, *pixels.shape[1:])
    try:
        return torch.empty(shape, dtype=pixels.dtype)
    except RuntimeError as error:
        gigabytes = torch.Size(shape).numel() * pixels.element_size() / 1e9
        raise DataError(
            f"{count} pictures of {pixels.shape[1]} x {pixels.shape[2]} pixels need "
            f"{gigabytes:,.1f} GB of memory; make them smaller with size="
        ) from error


def _require_alike(
    stack: Tensor, first_bits: int, first: str, pixels: Tensor, bits: int, name: str
) -> None:
    height, width = pixels.shape[1:]
    require(
        (height, width) == stack.shape[2:],
        f"expected pictures of one size, got {stack.shape[2]} x {stack.shape[3]} in {first} "
        f"and {height} x {width} in {name} (height x width); give size= to bring all to one",
        DataError,
    )
    require(
        bits == first_bits,
        f"expected pictures of one depth, got {first_bits} bits in {first} "
        f"and {bits} in {name}; convert them to one",
        DataError,
    )


def _pixels(name: str, content: Path | bytes) -> tuple[Tensor, int]:
    """Pixels ``(channels, height, width)`` of one picture, and their bits."""
    modes, turning = pillow("Image"), pillow("ImageOps")
    if isinstance(content, Path):
        require(content.is_file(), f"there is no file {name}", DataError)
    try:
        with modes.open(content if isinstance(content, Path) else io.BytesIO(content)) as image:
            _require_depth(image, name)
            image.load()
            return _exact(turning.exif_transpose(image), name)
    except SmaltiError:
        raise
    except Exception as error:  # A damaged picture makes a decoder raise almost anything.
        raise DataError(
            f"can't read the picture {name}: {error or type(error).__name__}; "
            "mend, replace or remove it"
        ) from error


def _require_depth(image: Any, name: str) -> None:
    """Refuse what Pillow would round to 8 bits without a word."""
    for codec, _, _, settings in image.tile:
        # A layout's name alone, or a tuple in which it may stand among numbers.
        words = settings if isinstance(settings, tuple) else (settings,)
        named_deep = any(isinstance(word, str) and DEEP.search(word) for word in words)
        deep = named_deep and not image.mode.startswith("I")
        require(
            not deep and codec != "ppm",  # So called where Netpbm's levels are not 256.
            f"expected 8 bits a colour, or 16 bits of grey, in {name}, got other levels; "
            "convert it",
            DataError,
        )


def _exact(image: Any, name: str) -> tuple[Tensor, int]:
    if image.mode.startswith("I"):
        values = torch.from_numpy(np.asarray(image).astype(np.int32))
        require(
            int(values.min()) >= 0 and int(values.max()) < 1 << 16,
            f"expected pixels from 0 to 65535 in {name}, "
            f"got {int(values.min())} to {int(values.max())}",
            DataError,
        )
        return values[None], 16
    image = _opaque(image, name)
    require(
        image.mode in {"1", "L", "P", "RGB"},
        f"expected a picture in grey or red, green and blue, got {image.mode} in {name}; "
        "convert it",
        DataError,
    )
    if image.mode in {"1", "P"}:
        image = image.convert("L" if image.mode == "1" else "RGB")
    array = torch.from_numpy(np.array(image))
    return (array[None] if array.ndim == 2 else array.permute(2, 0, 1)), 8


def _opaque(image: Any, name: str) -> Any:
    """The picture without its fourth channel, which must hide nothing."""
    if "transparency" in image.info and image.mode in {"1", "L", "P", "RGB"}:
        image = image.convert("RGBA")
    if image.mode not in {"RGBA", "LA", "PA"}:
        return image
    lowest, _ = image.getchannel("A").getextrema()
    require(
        lowest == 255,
        f"expected a picture without transparent places, got some in {name}; "
        "put it on a background",
        DataError,
    )
    return image.convert("L" if image.mode == "LA" else "RGB")
