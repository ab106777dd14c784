"""Files in the format of MNIST are read as its page describes them."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smalti.data.images import read_images
from smalti.errors import DataError

Array = np.ndarray[Any, np.dtype[Any]]
Noise = Callable[..., Array]
Idx = Callable[[Array], bytes]


@pytest.fixture
def folder(tmp_path: Path, noise: Noise, idx_bytes: Idx) -> Path:
    """Training files gzipped, test files plain."""
    place = tmp_path / "mnist"
    place.mkdir()
    for name, array in {"images-idx3": noise(5, 4, 3), "labels-idx1": np.arange(5)}.items():
        content = idx_bytes(array.astype("uint8"))
        (place / f"train-{name}-ubyte.gz").write_bytes(gzip.compress(content))
        (place / f"t10k-{name}-ubyte").write_bytes(idx_bytes(array[:2].astype("uint8")))
    return place


def test_a_folder_gives_its_parts_with_labels(folder: Path, noise: Noise) -> None:
    train, test = read_images(folder), read_images(folder, "test")
    assert (train.pixels.numpy() == noise(5, 4, 3)[:, None]).all()
    assert (test.pixels.numpy() == noise(5, 4, 3)[:2, None]).all()
    assert train.labels is not None
    assert train.labels.tolist() == [0, 1, 2, 3, 4]
    assert test.labels is not None
    assert test.labels.tolist() == [0, 1]
    with pytest.raises(DataError, match=r"no part 'valid' of .*mnist; it has: t10k, train"):
        read_images(folder, "valid")


def test_one_file_takes_the_labels_beside_it(folder: Path) -> None:
    path = folder / "train-images-idx3-ubyte.gz"
    assert read_images(path).labels is not None
    (folder / "train-labels-idx1-ubyte.gz").unlink()
    assert read_images(path).labels is None
    assert len(read_images(path)) == 5


def test_the_spelling_with_a_dot_is_read_too(tmp_path: Path, noise: Noise, idx_bytes: Idx) -> None:
    (tmp_path / "train-images.idx3-ubyte").write_bytes(idx_bytes(noise(2, 4, 4)))
    (tmp_path / "train-labels.idx1-ubyte").write_bytes(idx_bytes(np.array([7, 8], "uint8")))
    labels = read_images(tmp_path).labels
    assert labels is not None
    assert labels.tolist() == [7, 8]


def test_numbers_of_two_bytes_have_the_high_byte_first(tmp_path: Path) -> None:
    content = struct.pack(">BBBB3I2h", 0, 0, 11, 3, 1, 1, 2, 1, 258)
    (tmp_path / "a-idx3").write_bytes(content)
    images = read_images(tmp_path / "a-idx3")
    assert images.bits == 16
    assert images.pixels.tolist() == [[[[1, 258]]]]


@pytest.mark.parametrize("packed", [False, True])
def test_every_cut_is_noticed_and_named(
    tmp_path: Path, noise: Noise, idx_bytes: Idx, packed: bool
) -> None:
    whole = idx_bytes(noise(2, 4, 4))
    whole = gzip.compress(whole) if packed else whole
    path = tmp_path / "train-images-idx3-ubyte"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match="train-images-idx3-ubyte"):
            read_images(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            struct.pack(">BBBB3I5B", 0, 0, 8, 3, 1, 2, 2, *range(5)),
            "4 bytes .* got 5; it was cut or",
        ),
        (struct.pack(">BBBB3I3B", 0, 0, 8, 3, 1, 2, 2, *range(3)), "4 bytes .* got 3; it was cut"),
        (struct.pack(">BBBB3I2f", 0, 0, 13, 3, 1, 1, 2, 0.5, 1), "whole numbers in .*float32"),
        (struct.pack(">BBBBI2B", 0, 0, 8, 1, 2, 1, 1), r"expected pixels .*got \(2,\)"),
        (struct.pack(">BBBB3I", 0, 0, 8, 3, *[2**32 - 1] * 3), "got 0; it was cut"),
        (b"PK\3\4 and so on", "is not an idx file: it begins with"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "train-images-idx3-ubyte").write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read_images(tmp_path)
    assert "train-images-idx3-ubyte" in str(caught.value)


def test_labels_of_another_length_are_refused(folder: Path, idx_bytes: Idx) -> None:
    labels = folder / "t10k-labels-idx1-ubyte"
    labels.write_bytes(idx_bytes(np.zeros(3, "uint8")))
    with pytest.raises(DataError, match=r"2 images in .*t10k-labels-idx1-ubyte, got 3"):
        read_images(folder, "test")
