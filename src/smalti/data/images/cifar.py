"""CIFAR-10 as its makers give it: python batches (pickles) or binary batches."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import torch

from smalti.data.images.arrays import Array, as_labels, as_pixels
from smalti.data.images.collection import Images
from smalti.data.images.parts import require_whole
from smalti.data.images.plain_pickle import load_plain
from smalti.errors import DataError, require

BATCHES = {"train": [f"data_batch_{number}" for number in range(1, 6)], "test": ["test_batch"]}
NAME = re.compile(r"(data_batch_\d|test_batch)(\.bin)?")
SHAPE = (3, 32, 32)
NUMBERS = 3 * 32 * 32
BINARY = ".bin"


def is_batch(path: Path) -> bool:
    """Whether a file's name is that of a batch."""
    return NAME.fullmatch(path.name) is not None


def holds_batches(folder: Path) -> bool:
    """Whether a folder has batches."""
    return any(is_batch(file) for file in folder.iterdir())


def read_batches(folder: Path, split: str) -> Images:
    """The images of a part: five batches to train with, or the one to test with."""
    require(
        split in BATCHES,
        f"there is no part {split!r} of {folder}; it has: {', '.join(BATCHES)}; "
        "cut one off with split(images, valid_share, seed)",
        DataError,
    )
    suffix = BINARY if any(folder.glob(f"*_batch*{BINARY}")) else ""
    files = [folder / f"{name}{suffix}" for name in BATCHES[split]]
    missing = [file.name for file in files if not file.is_file()]
    require(
        not missing,
        f"expected {', '.join(file.name for file in files)} in {folder}, "
        f"got no {', '.join(missing)}; unpack the whole set there",
        DataError,
    )
    batches = [_batch(file) for file in files]
    return Images(
        torch.cat([batch.pixels for batch in batches]),
        labels=torch.cat([batch.labels for batch in batches if batch.labels is not None]),
        source=f"{folder}, {split}",
    )


def read_batch(path: Path, split: str) -> Images:
    """The images of one batch."""
    require_whole(split, str(path))
    return _batch(path)


def _batch(path: Path) -> Images:
    rows, labels = _binary(path) if path.suffix == BINARY else _pickled(path)
    pixels, _ = as_pixels(rows.reshape(-1, *SHAPE), str(path))
    return Images(pixels, labels=as_labels(labels, len(pixels), str(path)), source=str(path))


def _binary(path: Path) -> tuple[Array, Array]:
    """Rows of a label and the numbers of its image."""
    try:
        content = np.frombuffer(path.read_bytes(), np.uint8)
    except OSError as error:
        raise DataError(f"can't read {path}: {error}") from error
    require(
        len(content) > 0 and len(content) % (NUMBERS + 1) == 0,
        f"expected rows of {NUMBERS + 1} bytes in {path}, got {len(content)} bytes; "
        "it was cut or is of another set, fetch it again",
        DataError,
    )
    table = content.reshape(-1, NUMBERS + 1)
    return table[:, 1:], table[:, 0]


def _pickled(path: Path) -> tuple[Array, Array]:
    """A dictionary with ``data`` and ``labels``."""
    content = load_plain(path)
    entries: dict[Any, Any] = content if isinstance(content, dict) else {}
    data, labels = (entries.get(name, entries.get(name.encode())) for name in ("data", "labels"))
    if not isinstance(data, np.ndarray):
        raise DataError(f"expected an array called data in {path}, got: {_listed(entries)}")
    require(
        data.ndim == 2 and data.shape[1] == NUMBERS and data.dtype == np.uint8,
        f"expected data (n, {NUMBERS}) of uint8 in {path}, got {data.shape} of {data.dtype}",
        DataError,
    )
    whole = isinstance(labels, np.ndarray) or (
        isinstance(labels, list) and all(isinstance(label, int) for label in labels)
    )
    require(whole, f"expected labels as a list of whole numbers in {path}", DataError)
    return data, np.asarray(labels)


def _listed(entries: dict[Any, Any]) -> str:
    return ", ".join(str(name) for name in entries) or "nothing of a dictionary"
