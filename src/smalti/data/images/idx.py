"""Images in idx files, the format of MNIST: big-endian sizes, then the numbers; gzipped or not."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np

from smalti.data.images.arrays import Array, as_labels, as_pixels
from smalti.data.images.collection import Images
from smalti.data.images.parts import part_of, require_whole
from smalti.data.lines import opened
from smalti.errors import DataError, require

# The third byte of a file tells the type of its numbers.
TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
NAME = re.compile(r"(\w+)-images[-.]idx3[-.]ubyte(\.gz)?")


def is_idx(path: Path) -> bool:
    """Whether a file's name says so."""
    return re.search(r"idx\d|ubyte", path.name) is not None


def holds_idx(folder: Path) -> bool:
    """Whether a folder has such images."""
    return bool(_parts(folder))


def read_idx_folder(folder: Path, split: str) -> Images:
    """The images of a part, such as ``train-images-idx3-ubyte.gz``, and its labels."""
    parts = _parts(folder)
    return _images(parts[part_of(parts, split, str(folder))])


def read_idx_file(path: Path, split: str) -> Images:
    """The images of one file, and the labels of the one beside it, if there is one."""
    require_whole(split, str(path))
    return _images(path)


def read_idx(path: Path) -> Array:
    """The numbers of an idx file."""
    with opened(path) as file:
        head = file.read(4)
        require(
            len(head) == 4 and head[:2] == b"\0\0" and head[2] in TYPES,
            f"{path} is not an idx file: it begins with {head!r}",
            DataError,
        )
        number, axes = np.dtype(TYPES[head[2]]), head[3]
        sizes = file.read(4 * axes)
        require(
            len(sizes) == 4 * axes,
            f"{path} ends within its head; it was cut, fetch it again",
            DataError,
        )
        shape = tuple(int(size) for size in np.frombuffer(sizes, ">u4"))
        expected = math.prod(shape) * number.itemsize
        # All that is there: a damaged size would ask for more memory than there is.
        content = file.read()
    require(
        len(content) == expected,
        f"expected {expected} bytes for numbers {shape} in {path}, "
        f"got {len(content)}; "
        "it was cut or changed, fetch it again",
        DataError,
    )
    return np.frombuffer(content, number).reshape(shape)


def _parts(folder: Path) -> dict[str, Path]:
    """The files of images by part; an unpacked one comes before a gzipped one."""
    named = ((NAME.fullmatch(file.name), file) for file in sorted(folder.iterdir(), reverse=True))
    return {match[1]: file for match, file in named if match is not None}


def _images(path: Path) -> Images:
    pixels, bits = as_pixels(read_idx(path), str(path))
    beside = _labels_beside(path)
    labels = None
    if beside is not None:
        labels = as_labels(read_idx(beside), len(pixels), str(beside))
    return Images(pixels, bits, labels, str(path))


def _labels_beside(path: Path) -> Path | None:
    name = path.name.replace("images", "labels").replace("idx3", "idx1")
    plain = name.removesuffix(".gz")
    files = [path.with_name(other) for other in (name, plain, f"{plain}.gz")]
    return next((file for file in files if file != path and file.is_file()), None)
