"""A folder of pictures: loose, or a folder for each class, in parts or in one piece."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from smalti.data.images.cache import cached, stamp_of
from smalti.data.images.collection import Images
from smalti.data.images.parts import PARTS, is_part, part_of, require_whole
from smalti.data.images.pictures import SUFFIXES, decode
from smalti.errors import DataError, require


def read_folder(folder: Path, split: str, size: int | None, use_cache: bool) -> Images:
    """The pictures of a folder, in the order of their paths.

    The folder is in parts when all folders in it that hold pictures are called so, such as
    ``train`` and ``val``. Below, two folders or more that hold all pictures are classes,
    numbered in the order of their names; those of ``train`` count for all parts.
    """
    places = _pictures(folder)
    require(
        bool(places),
        f"{folder} holds no pictures; expected files that end in {', '.join(sorted(SUFFIXES))}",
        DataError,
    )
    parts = {place.parts[0] for place in places if len(place.parts) > 1}
    top, classes = Path(), _classes(places)
    if parts and all(len(place.parts) > 1 and is_part(place.parts[0]) for place in places):
        top = Path(part_of(parts, split, str(folder)))
        learned = [part for part in parts if part.casefold() in PARTS["train"]]
        classes = _classes(_below(places, Path(learned[0]) if learned else top))
        places = _below(places, top)
    else:
        require_whole(split, str(folder))
    base = folder / top
    files = [base / place for place in places]
    labels = _labels(places, classes, base)

    def make() -> Images:
        named = ((str(file), file) for file in files)
        pixels, bits = decode(named, len(files), size)
        return Images(
            pixels, bits, None if labels is None else torch.tensor(labels), source=str(base)
        )

    names = [place.as_posix() for place in places]
    if not use_cache:
        return replace(make(), names=names)
    home = base.resolve()
    key = {"folder": str(home), "size": size}
    stamp = stamp_of((home / place for place in places), *classes)
    return replace(cached(key, stamp, str(base), make), names=names)


def read_files(files: Sequence[Path], size: int | None) -> Images:
    """Picture files in the given order, without labels."""
    require(bool(files), "expected at least one picture file, got none", DataError)
    pixels, bits = decode(((str(file), file) for file in files), len(files), size)
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    names = [file.name for file in files]
    return Images(pixels, bits, source=f"{files[0]}{more}", names=names)


def _pictures(folder: Path) -> list[Path]:
    """Paths below the folder of all pictures, sorted; hidden ones are left out."""
    found: list[Path] = []
    seen: set[str] = set()
    for place, folders, files in os.walk(folder, followlinks=True):
        # A link to a folder above would be followed for ever.
        real = os.path.realpath(place)
        folders[:] = [] if real in seen else [name for name in folders if name[0] != "."]
        if real not in seen:
            here = Path(place).relative_to(folder)
            found += [
                here / name
                for name in files
                if name[0] != "." and Path(name).suffix.lower() in SUFFIXES
            ]
        seen.add(real)
    return sorted(found, key=lambda path: path.parts)


def _below(places: Sequence[Path], top: Path) -> list[Path]:
    return [place.relative_to(top) for place in places if place.is_relative_to(top)]


def _classes(places: Sequence[Path]) -> list[str]:
    """The names of the classes; none where pictures lie loose or in one folder."""
    names = {place.parts[0] if len(place.parts) > 1 else "" for place in places}
    return [] if "" in names or len(names) < 2 else sorted(names)


def _labels(places: Sequence[Path], classes: Sequence[str], base: Path) -> list[int] | None:
    """A class for each picture; None where there are no classes."""
    if not classes or not _classes(places):
        return None
    numbers = {name: number for number, name in enumerate(classes)}
    strange = sorted({place.parts[0] for place in places} - numbers.keys())
    require(
        not strange,
        f"expected the classes of the training part in {base}, "
        f"got also {', '.join(strange[:5])}; name the folders alike",
        DataError,
    )
    return [numbers[place.parts[0]] for place in places]
