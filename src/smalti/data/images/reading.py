"""Images from wherever they are: a known set, a file of one of many formats, a folder, the hub."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from smalti.data.images.archives import read_npz
from smalti.data.images.cifar import holds_batches, is_batch, read_batch, read_batches
from smalti.data.images.collection import Images
from smalti.data.images.folders import read_files, read_folder
from smalti.data.images.hub_sets import PREFIX, read_hub
from smalti.data.images.idx import holds_idx, is_idx, read_idx_file, read_idx_folder
from smalti.data.images.known import DIGITS, known_names, known_place, read_digits
from smalti.data.images.parts import checked_split, require_whole
from smalti.data.images.resizing import squared
from smalti.errors import DataError, require


def read_images(
    source: str | Path | Sequence[str | Path],
    split: str = "train",
    *,
    size: int | None = None,
    channels: int | None = None,
    use_cache: bool = True,
) -> Images:
    """Read images as exact integers.

    A file's format is told by its name: ``.npz``, idx (``train-images-idx3-ubyte``, gzipped or
    not), batches of CIFAR-10 (``data_batch_1``, ``data_batch_1.bin``), else a picture. A folder
    may hold idx files, batches of CIFAR-10, or pictures.

    Args:
        source: A known name (``cifar10``, ``digits``, ``fashion_mnist``, ``mnist``,
            ``tiny_imagenet``), ``hub:NAME``, the path of a file or folder, or picture files. A
            path that is also a known name is written ``./mnist``.
        split: ``train``, ``valid`` or ``test``. A source in one piece is all ``train``. Of one
            with a validation part and no test part, the former is also ``test``.
        size: Where given, the middle square of each image is resized to it by area averaging.
        channels: 3 gives grey images three equal channels; 1 refuses images in colour. None
            leaves them as they are.
        use_cache: Whether decoded pictures of folders and archives are kept on disk.

    Raises:
        DataError: What is there can't be used; the message names the file.
        MissingExtraError: Pillow, scikit-learn or datasets is needed and not installed.
    """
    checked_split(split)
    require(
        size is None or (isinstance(size, int) and size >= 1),
        f"size must be a whole number from 1 on, got {size!r}",
    )
    require(channels in {None, 1, 3}, f"channels must be 1, 3 or None, got {channels!r}")
    images = _read(source, split, size, use_cache)
    if size is not None:
        images = replace(images, pixels=squared(images.pixels, size))
    return images if channels is None else _with_channels(images, channels)


def _read(
    source: str | Path | Sequence[str | Path], split: str, size: int | None, use_cache: bool
) -> Images:
    if not isinstance(source, (str, Path)):
        require(
            isinstance(source, Sequence) and all(isinstance(file, (str, Path)) for file in source),
            f"expected a name, a path or a list of paths, got {type(source).__name__}",
        )
        require_whole(split, "a list of pictures")
        return read_files([Path(file).expanduser() for file in source], size)
    if isinstance(source, str) and source.startswith(PREFIX):
        return read_hub(source.removeprefix(PREFIX), split, size)
    if source == DIGITS:
        return read_digits(split)
    path = known_place(str(source)) if source in known_names() else Path(source).expanduser()
    require(
        path.exists(),
        f"there is no file or folder {path}; the sets known by name are: "
        f"{', '.join(known_names())}",
        DataError,
    )
    try:
        return _read_path(path, split, size, use_cache)
    except OSError as error:
        raise DataError(f"can't read {path}: {error}") from error


def _read_path(path: Path, split: str, size: int | None, use_cache: bool) -> Images:
    if path.is_dir():
        return _read_folder(path, split, size, use_cache)
    if path.suffix.lower() == ".npz":
        return read_npz(path, split, size, use_cache)
    if is_idx(path):
        return read_idx_file(path, split)
    if is_batch(path):
        return read_batch(path, split)
    require_whole(split, str(path))
    return read_files([path], size)


def _read_folder(folder: Path, split: str, size: int | None, use_cache: bool) -> Images:
    if holds_batches(folder):
        return read_batches(folder, split)
    if holds_idx(folder):
        return read_idx_folder(folder, split)
    return read_folder(folder, split, size, use_cache)


def _with_channels(images: Images, channels: int) -> Images:
    require(
        len(images.pixels[0]) in {1, channels},
        f"expected grey images in {images.source}, got images in colour; "
        "convert them, or read them with channels=3",
        DataError,
    )
    return replace(images, pixels=images.pixels.expand(-1, channels, -1, -1).contiguous())
