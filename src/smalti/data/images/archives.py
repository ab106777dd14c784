"""Images in ``.npz`` files: arrays of pixels, or the bytes of JPEG files one behind the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from smalti.data.images.arrays import Array, as_labels, as_pixels
from smalti.data.images.cache import cached, stamp_of
from smalti.data.images.collection import Images
from smalti.data.images.parts import is_part, part_of, require_whole
from smalti.data.images.pictures import decode
from smalti.errors import DataError, require

# Before or behind the name of a part, or alone: ``train_x``, ``x_train``, ``x``.
ROLES = {
    "x": "pixels",
    "images": "pixels",
    "y": "labels",
    "labels": "labels",
    "jpeg": "jpeg",
    "off": "offsets",
}


class Archive:
    """An ``.npz`` file, opened; an array is read when it is asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            opened = np.load(path, allow_pickle=False)
        except Exception as error:  # A damaged file makes NumPy raise almost anything.
            raise DataError(f"{path} is not an .npz file, or damaged: {error}") from error
        require(
            hasattr(opened, "files"),
            f"{path} holds one array without a name; write it with numpy.savez(path, x=array)",
            DataError,
        )
        self.names: list[str] = list(opened.files)
        self._opened = opened

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def read(self, name: str) -> Array:
        """The array of that name."""
        try:
            array: Array = self._opened[name]
        except Exception as error:  # As above; arrays of objects are refused here too.
            raise DataError(f"can't read {name} of {self.path}: {error}") from error
        return array

    def where(self, name: str) -> str:
        """An array's place, for messages."""
        return f"{name} of {self.path}"

    def parts(self) -> dict[str, dict[str, str]]:
        """For each part, which array has which role; ``""`` is what belongs to no part."""
        parts: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for name in self.names:
            left, _, right = name.rpartition("_")
            for part, role in ((left, right), (right, left), ("", name)):
                if role in ROLES and (not part or is_part(part)) and bool(part) == bool(left):
                    parts[part].setdefault(ROLES[role], name)
                    break
        return dict(parts)


def read_npz(path: Path, split: str, size: int | None, use_cache: bool) -> Images:
    """The images of an ``.npz`` file.

    Args:
        path: With arrays ``train_x``, ``test_x`` and so on, and ``train_y`` for labels; with
            ``train_jpeg`` and ``train_off``, the bytes of all pictures and where each begins
            and the last ends; with ``x`` and ``y``; or any array of three or four axes.
        split: Which part.
        size: Of decoded pictures.
        use_cache: Whether decoded pictures are kept.
    """
    with Archive(path) as archive:
        roles, source = _roles(archive, split)
        if "jpeg" not in roles:
            return _arrays(archive, roles, source)

        def make() -> Images:
            return _pictures(archive, roles, source, size)

        if not use_cache:
            return make()
        key = {"archive": str(path.resolve()), "array": roles["jpeg"], "size": size}
        return cached(key, stamp_of([path.resolve()]), source, make)


def _roles(archive: Archive, split: str) -> tuple[dict[str, str], str]:
    """Which arrays to read, and what to call them."""
    found = {
        part: roles
        for part, roles in archive.parts().items()
        if "pixels" in roles or {"jpeg", "offsets"} <= roles.keys()
    }
    named = [part for part in found if part]
    if named:
        part = part_of(named, split, str(archive.path))
        return found[part], f"{archive.path}, {part}"
    require_whole(split, str(archive.path))
    if "" in found:
        return found[""], str(archive.path)
    first = next((name for name in archive.names if archive.read(name).ndim in {3, 4}), None)
    require(
        first is not None,
        "expected arrays train_x and test_x, train_jpeg and train_off, or x in "
        f"{archive.path}, got: {', '.join(archive.names) or 'none'}",
        DataError,
    )
    return {"pixels": str(first)}, f"{archive.path}, {first}"


def _arrays(archive: Archive, roles: dict[str, str], source: str) -> Images:
    name = roles["pixels"]
    pixels, bits = as_pixels(archive.read(name), archive.where(name))
    labels = None
    if "labels" in roles:
        name = roles["labels"]
        labels = as_labels(archive.read(name), len(pixels), archive.where(name))
    return Images(pixels, bits, labels, source)


def _pictures(archive: Archive, roles: dict[str, str], source: str, size: int | None) -> Images:
    data, offsets = archive.read(roles["jpeg"]), archive.read(roles["offsets"])
    where = archive.where(roles["offsets"])
    require(
        data.ndim == 1 and data.dtype == np.uint8,
        f"expected bytes (n,) of uint8 in {archive.where(roles['jpeg'])}, "
        f"got {data.shape} of {data.dtype}",
        DataError,
    )
    require(
        offsets.ndim == 1 and offsets.dtype.kind in "ui" and len(offsets) >= 2,
        f"expected where pictures begin and the last ends, (n + 1,) whole numbers, in {where}, "
        f"got {offsets.shape} of {offsets.dtype}",
        DataError,
    )
    offsets = offsets.astype(np.int64)
    require(
        bool(offsets[0] >= 0 and (np.diff(offsets) > 0).all() and offsets[-1] <= len(data)),
        f"expected rising places in {len(data)} bytes in {where}, got others; "
        "the file was cut, or the arrays are of different sets",
        DataError,
    )
    count = len(offsets) - 1
    labels = None
    if "labels" in roles:
        name = roles["labels"]
        labels = as_labels(archive.read(name), count, archive.where(name))

    def named() -> Iterator[tuple[str, bytes]]:
        for place, (start, end) in enumerate(pairwise(offsets.tolist())):
            yield f"{place} in {archive.where(roles['jpeg'])}", data[start:end].tobytes()

    pixels, bits = decode(named(), count, size)
    return Images(pixels, bits, labels, source)
