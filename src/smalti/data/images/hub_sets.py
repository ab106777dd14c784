"""Sets of images of the Hugging Face hub, through the package datasets; no code of theirs runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from smalti.data.images.collection import Images
from smalti.data.images.extras import datasets
from smalti.data.images.parts import part_of
from smalti.data.images.pictures import decode
from smalti.errors import DataError, require

PREFIX = "hub:"


def read_hub(name: str, split: str, size: int | None) -> Images:
    """The images of a set of the hub, or of a local copy of one.

    Args:
        name: As the hub calls it, such as ``ylecun/mnist``; or a folder with its files.
        split: Which part.
        size: Of decoded pictures.
    """
    library = datasets()
    where = f"{PREFIX}{name}"
    require(bool(name), f"expected the name of a set behind {PREFIX}", DataError)
    try:
        parts = library.load_dataset(name)
    except Exception as error:  # Network, hub and files fail in ways of their own.
        raise DataError(
            f"can't get {where}: {str(error).strip() or type(error).__name__}; "
            "is the name right, and is there a network or a copy from an earlier time? "
            "Or give a local file or folder"
        ) from error
    part = part_of(parts, split, where)
    table = parts[part]
    column, label = _columns(table, library, where)
    table = table.cast_column(column, library.Image(decode=False))
    require(len(table) > 0, f"{where} holds no images in {part}", DataError)

    def named() -> Iterator[tuple[str, Path | bytes]]:
        for place, picture in enumerate(table[column]):
            content = picture["bytes"]
            yield f"{place} of {where}", Path(picture["path"]) if content is None else content

    pixels, bits = decode(named(), len(table), size)
    return Images(pixels, bits, _labels(table, label, where), f"{where}, {part}")


def _columns(table: Any, library: Any, where: str) -> tuple[str, str | None]:
    """The column of pictures and that of classes, if there is one."""
    pictures = [name for name, kind in table.features.items() if isinstance(kind, library.Image)]
    classes = [
        name for name, kind in table.features.items() if isinstance(kind, library.ClassLabel)
    ]
    require(
        bool(pictures),
        f"expected a column of pictures in {where}, got: {', '.join(table.features)}",
        DataError,
    )
    return pictures[0], classes[0] if classes else None


def _labels(table: Any, label: str | None, where: str) -> Tensor | None:
    """Classes by number; None where there are none, or where the makers keep them secret."""
    if label is None:
        return None
    labels = list(table[label])
    require(
        all(isinstance(number, int) for number in labels),
        f"expected a class for each image in column {label} of {where}, got some without",
        DataError,
    )
    return None if min(labels) < 0 else torch.tensor(labels)
