"""Pictures are written whole, hold the very integers, and leave nothing behind when they fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from smalti.data.images import grid_picture, read_images, write_images, write_picture
from smalti.errors import ConfigError, DataError, ShapeError, SmaltiError

Noise = Callable[..., np.ndarray[Any, np.dtype[Any]]]


def opened(path: Path) -> np.ndarray[Any, np.dtype[Any]]:
    image = pytest.importorskip("PIL.Image")
    with image.open(path) as picture:
        assert picture.format == "PNG"
        return np.asarray(picture)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_file_holds_the_very_integers(tmp_path: Path, noise: Noise, channels: int) -> None:
    pixels = noise(2, channels, 5, 4)
    place = tmp_path / "new" / "folder"
    files = write_images(torch.from_numpy(pixels), place, ["b", "a.png"])
    assert files == [place / "b.png", place / "a.png"]
    assert sorted(file.name for file in place.iterdir()) == ["a.png", "b.png"]
    for file, image in zip(files, pixels, strict=True):
        expected = image.transpose(1, 2, 0)
        assert (opened(file) == (expected[..., 0] if channels == 1 else expected)).all()
    back = read_images(files).pixels.numpy()
    assert (back == pixels).all()


def test_grey_of_sixteen_bits_is_written_exactly(tmp_path: Path, noise: Noise) -> None:
    pixels = noise(1, 1, 5, 4, below=1 << 16, kind="int32")
    [file] = write_images(torch.from_numpy(pixels), tmp_path, ["a"], bits=16)
    assert (opened(file) == pixels[0, 0]).all()
    assert (read_images(file).pixels.numpy() == pixels).all()


def test_few_bits_are_stretched_from_black_to_white(tmp_path: Path) -> None:
    pixels = torch.tensor([[[[0, 1, 2, 3]]]], dtype=torch.uint8)
    [file] = write_images(pixels, tmp_path, ["a"], bits=2)
    assert opened(file).tolist() == [[0, 85, 170, 255]]


def test_old_files_are_replaced_and_others_stay(tmp_path: Path, noise: Noise) -> None:
    (tmp_path / "a.png").write_text("old")
    (tmp_path / "other.txt").write_text("mine")
    write_images(torch.from_numpy(noise(1, 1, 4, 4)), tmp_path, ["a"])
    assert (opened(tmp_path / "a.png") == noise(1, 1, 4, 4)[0, 0]).all()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.png", "other.txt"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": ["a"]}, "a name for each of 2 images, got 1"),
        ({"names": "ab"}, "a name for each of 2 images, got 'ab'"),
        ({"names": ["a", "../b"]}, "without folders, got '../b'"),
        ({"names": ["a", ""]}, "without folders"),
        ({"names": ["a", ".."]}, "without folders"),
        ({"names": ["a", "b\0"]}, "without folders"),
        ({"names": ["a", "A.png"]}, "different names"),
        ({"pixels": torch.zeros(2, 2, 4, 4, dtype=torch.uint8)}, r"expected images \(n, 1 or 3"),
        ({"pixels": torch.zeros(2, 3, 4, 4)}, "expected images"),
        ({"pixels": torch.zeros(2, 3, 4, 4, dtype=torch.int32), "bits": 16}, "grey only"),
    ],
)
def test_what_can_not_be_written_leaves_no_trace(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    good = {
        "pixels": torch.zeros(2, 3, 4, 4, dtype=torch.uint8),
        "directory": tmp_path / "new",
        "names": ["a", "b"],
    }
    with pytest.raises((ConfigError, ShapeError), match=message):
        write_images(**{**good, **changes})
    assert not list(tmp_path.iterdir())


def test_a_batch_that_fails_midway_leaves_no_file_of_it(tmp_path: Path) -> None:
    pixels = torch.zeros(2, 1, 4, 4, dtype=torch.uint8)
    with pytest.raises(DataError, match=r"can't write into .*new"):
        write_images(pixels, tmp_path / "new" / "er", ["a", "b" * 300])
    assert not list(tmp_path.iterdir())
    (tmp_path / "b.png").mkdir()
    with pytest.raises(DataError, match=r"b\.png: it is a directory"):
        write_images(pixels, tmp_path, ["a", "b"])
    assert [path.name for path in tmp_path.iterdir()] == ["b.png"]
    (tmp_path / "file").write_text("mine")
    with pytest.raises(DataError, match=r"can't write into .*file"):
        write_images(pixels, tmp_path / "file", ["a", "b"])


def test_a_grid_is_written_as_it_is_laid_out(tmp_path: Path, noise: Noise) -> None:
    picture = grid_picture(torch.from_numpy(noise(5, 3, 4, 6)), 3)
    write_picture(picture, tmp_path / "new" / "grid.png")
    assert (opened(tmp_path / "new" / "grid.png") == picture.numpy()).all()
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["grid.png"]


@pytest.mark.parametrize(
    ("picture", "name"),
    [
        (torch.zeros(4, 4, 3), "a.png"),
        (torch.zeros(4, 4, dtype=torch.uint8), "a.png"),
        (torch.zeros(3, 4, 4, dtype=torch.uint8), "a.png"),
        (torch.zeros(4, 4, 3, dtype=torch.uint8), "a.jpg"),
    ],
)
def test_what_is_no_picture_is_not_written(tmp_path: Path, picture: Any, name: str) -> None:
    with pytest.raises(SmaltiError, match="expected"):
        write_picture(picture, tmp_path / "new" / name)
    assert not list(tmp_path.iterdir())


def test_images_stand_row_by_row_on_white(noise: Noise) -> None:
    pixels = noise(5, 3, 4, 6)
    picture = grid_picture(torch.from_numpy(pixels), 3, gap=1)
    # By hand: two rows of height 4 and three columns of width 6, with lines of 1 between.
    expected = np.full((11, 22, 3), 255)
    for place, image in enumerate(pixels):
        top, left = 1 + 5 * (place // 3), 1 + 7 * (place % 3)
        expected[top : top + 4, left : left + 6] = image.transpose(1, 2, 0)
    assert picture.dtype == torch.uint8
    assert (picture.numpy() == expected).all()


def test_grey_images_of_few_bits_are_stretched_and_few_make_a_short_row() -> None:
    pixels = torch.tensor([[[[0, 16, 31]]]], dtype=torch.uint8)
    picture = grid_picture(pixels, 8, bits=5, gap=0)
    # By hand: 16 * 255 / 31 is 131.6.
    assert picture.tolist() == [[[0] * 3, [132] * 3, [255] * 3]]


@pytest.mark.parametrize(
    "settings",
    [
        {"columns": 0},
        {"gap": -1},
        {"pixels": torch.zeros(0, 3, 4, 4, dtype=torch.uint8)},
        {"pixels": torch.zeros(2, 4, 4, 4, dtype=torch.uint8)},
        {"pixels": torch.zeros(2, 3, 4, 4)},
    ],
)
def test_impossible_grids_are_refused(settings: dict[str, Any]) -> None:
    good = {"pixels": torch.zeros(2, 3, 4, 4, dtype=torch.uint8), "columns": 2}
    with pytest.raises((ConfigError, ShapeError)):
        grid_picture(**{**good, **settings})
