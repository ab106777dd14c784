"""PNG files: each whole or not there at all, and none of a batch before all are made."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from smalti.data.images.extras import pillow
from smalti.data.images.grid import as_bytes
from smalti.errors import DataError, ShapeError, require

SUFFIX = ".png"


def write_images(
    pixels: Tensor, directory: str | Path, names: Sequence[str], *, bits: int = 8
) -> list[Path]:
    """Write images as PNG files; files of those names are replaced.

    Up to 8 bits a file has 8, values stretched to 0..255; above 8 a grey one has 16. With 8 and
    16 bits the file holds the very integers.

    Args:
        pixels: Images ``(n, channels, height, width)`` of whole numbers, 1 or 3 channels.
        directory: Where; it is made where it is not.
        names: A name for each; ``.png`` is put behind those that do not end in it.
        bits: Of a pixel's channel.

    Returns:
        The files, in order.
    """
    images = stretched(pixels, bits)
    files = _file_names(names, len(images))
    with _draft_in(Path(directory)) as draft:
        for image, name in zip(images, files, strict=True):
            _save(image.permute(1, 2, 0), draft / name)
    return [Path(directory) / name for name in files]


def write_picture(picture: Tensor, path: str | Path) -> None:
    """Write a picture ``(height, width, 3)`` uint8 as a PNG file, whole or not at all."""
    require(
        picture.ndim == 3 and picture.shape[-1] in {1, 3} and picture.dtype == torch.uint8,
        f"expected a picture (height, width, 3) of uint8, "
        f"got {tuple(picture.shape)} of {picture.dtype}",
        ShapeError,
    )
    path = Path(path)
    require(
        path.suffix.lower() == SUFFIX,
        f"expected a name that ends in {SUFFIX}, got {path}: pictures are written as PNG",
    )
    with _draft_in(path.parent) as draft:
        _save(picture.detach().cpu(), draft / path.name)


def stretched(pixels: Tensor, bits: int) -> Tensor:
    """Images as a PNG file holds them: 0..255 in uint8, or 0..65535 in int32 above 8 bits."""
    if bits <= 8:
        return as_bytes(pixels, bits)
    require(
        pixels.ndim == 4 and pixels.shape[1] == 1,
        f"expected grey images (n, 1, height, width) of {bits} bits, got {tuple(pixels.shape)}; "
        "PNG files of more than 8 bits are written in grey only",
        ShapeError,
    )
    scale = (2**16 - 1) / (2**bits - 1)
    wide: Tensor = (pixels.detach().cpu().double() * scale).round()
    return wide.to(torch.int32)


def _file_names(names: Sequence[str], count: int) -> list[str]:
    require(
        not isinstance(names, str) and len(names) == count,
        f"expected a name for each of {count} images, got {names!r}"
        if isinstance(names, str)
        else f"expected a name for each of {count} images, got {len(names)}",
    )
    for name in names:
        require(
            isinstance(name, str)
            and name not in {"", ".", ".."}
            and not set(name) & {"/", "\\", "\0"},
            f"expected names of files without folders, got {name!r}",
        )
    files = [name if name.lower().endswith(SUFFIX) else name + SUFFIX for name in names]
    # Some systems do not tell capitals from small letters.
    require(
        len({name.casefold() for name in files}) == len(files),
        "expected different names, got some twice: one image would replace the other",
    )
    return files


def _save(picture: Tensor, path: Path) -> None:
    """Write ``(height, width, channels)``."""
    array = picture.numpy() if picture.dtype == torch.uint8 else picture.numpy().astype(np.uint16)
    image = pillow("Image").fromarray(
        np.ascontiguousarray(array[..., 0] if array.shape[-1] == 1 else array)
    )
    image.save(path, format="PNG")


@contextmanager
def _draft_in(directory: Path) -> Iterator[Path]:
    """A new folder in ``directory``, whose files move up when the block ends well."""
    pillow("Image")  # Where it is missing, no folder is made.
    made: list[Path] = []
    draft: Path | None = None
    try:
        made = [place for place in (directory, *directory.parents) if not place.exists()]
        directory.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".smalti-", dir=directory))
        yield draft
        for file in sorted(draft.iterdir()):
            target = directory / file.name
            require(not target.is_dir(), f"can't write {target}: it is a directory", DataError)
        for file in sorted(draft.iterdir()):
            file.replace(directory / file.name)
    except OSError as error:
        raise DataError(f"can't write into {directory}: {error}") from error
    finally:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)
        for place in made:
            with suppress(OSError):  # Those that hold something now stay.
                place.rmdir()
