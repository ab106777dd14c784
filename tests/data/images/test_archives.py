"""Arrays and JPEG bytes in .npz files come out exact, channels first, of the right part."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from smalti.data.images import read_images
from smalti.errors import DataError

Array = np.ndarray[Any, np.dtype[Any]]
Noise = Callable[..., Array]


def saved(path: Path, **arrays: Array) -> Path:
    np.savez_compressed(path, **arrays)
    return path


def test_colour_is_moved_to_the_front_and_nothing_else_changes(
    tmp_path: Path, noise: Noise
) -> None:
    train, test = noise(6, 5, 4, 3), noise(2, 5, 4, 3, seed=1)
    labels = noise(6, below=10)
    path = saved(tmp_path / "a.npz", train_x=train, train_y=labels, test_x=test, classes=["a"])
    images = read_images(path)
    assert images.shape == (3, 5, 4)
    assert images.pixels.dtype == torch.uint8
    assert images.pixels.is_contiguous()
    assert (images.pixels.permute(0, 2, 3, 1).numpy() == train).all()
    assert images.labels is not None
    assert images.labels.dtype == torch.int64
    assert images.labels.tolist() == labels.tolist()
    assert images.source == f"{path}, train"
    tested = read_images(path, "test")
    assert (tested.pixels.permute(0, 2, 3, 1).numpy() == test).all()
    assert tested.labels is None


def test_grey_gets_one_channel_and_channels_that_come_first_stay(
    tmp_path: Path, noise: Noise
) -> None:
    grey, first = noise(3, 5, 4), noise(3, 3, 5, 4)
    pixels = read_images(saved(tmp_path / "a.npz", x=grey)).pixels
    assert (pixels.numpy() == grey[:, None]).all()
    pixels = read_images(saved(tmp_path / "b.npz", x=first)).pixels
    assert (pixels.numpy() == first).all()


@pytest.mark.parametrize(
    ("pixels", "labels"),
    [("x_train", "y_train"), ("train_images", "train_labels"), ("x", "y"), ("images", "labels")],
)
def test_other_usual_names_are_understood(
    tmp_path: Path, noise: Noise, pixels: str, labels: str
) -> None:
    numbers = np.array([[2], [0], [1]])
    path = saved(tmp_path / "a.npz", **{labels: numbers, pixels: noise(3, 4, 4)})
    images = read_images(path)
    assert (images.pixels.numpy()[:, 0] == noise(3, 4, 4)).all()
    assert images.labels is not None
    assert images.labels.tolist() == [2, 0, 1]


def test_without_known_names_the_first_array_that_can_be_images_is_taken(
    tmp_path: Path, noise: Noise
) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, noise(3), noise(3, 4, 4), noise(9, 9, 9))
    assert read_images(path).pixels.shape == (3, 1, 4, 4)


@pytest.mark.parametrize(
    ("kind", "below", "bits", "stored"),
    [
        ("bool", 2, 1, torch.uint8),
        ("uint8", 2, 8, torch.uint8),
        ("int64", 256, 8, torch.uint8),
        ("int16", 300, 16, torch.int32),
        ("uint16", 200, 16, torch.int32),
        (">u2", 1 << 16, 16, torch.int32),
    ],
)
def test_whole_numbers_keep_their_values_and_tell_their_bits(
    tmp_path: Path, noise: Noise, kind: str, below: int, bits: int, stored: torch.dtype
) -> None:
    array = noise(2, 20, 20, below=below, kind=kind)
    images = read_images(saved(tmp_path / "a.npz", x=array))
    assert images.bits == bits
    assert images.pixels.dtype == stored
    assert (images.pixels[:, 0].numpy() == array.astype(np.int64)).all()


def test_a_set_without_a_test_part_gives_its_validation_part_and_says_so(
    tmp_path: Path, noise: Noise
) -> None:
    path = saved(tmp_path / "a.npz", train_x=noise(2, 4, 4), val_x=noise(3, 4, 4))
    assert len(read_images(path, "valid")) == len(read_images(path, "test")) == 3
    assert read_images(path, "test").source.endswith(", val")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros((2, 4, 4, 4), "uint8")}, "expected 1 or 3 channels in x of .*got 4"),
        ({"x": np.zeros((2, 4, 4), "float32")}, "whole numbers in x of .*float32 from 0.0 to 0.0"),
        ({"x": np.full((2, 4, 4), -1)}, "0 to 65535 in x of .*got -1 to -1"),
        ({"x": np.full((2, 4, 4), 1 << 16)}, "got 65536 to 65536"),
        ({"x": np.zeros((2, 16), "uint8")}, r"expected pixels .* in x of .*got \(2, 16\)"),
        ({"x": np.zeros((0, 4, 4), "uint8")}, r"got \(0, 4, 4\)"),
        ({"x": np.full((2, 4, 4), "a")}, "whole numbers in x of .*<U1"),
        ({"weights": np.zeros(3)}, "expected arrays train_x and test_x.*got: weights"),
        ({"x": np.zeros((2, 4, 4), "uint8"), "y": np.zeros(3, "int64")}, "2 images in y of .*3"),
        ({"x": np.zeros((2, 4, 4), "uint8"), "y": np.zeros(2)}, "labels .* of whole numbers in y"),
        ({"x": np.zeros((2, 4, 4), "uint8"), "y": np.eye(2, dtype=int)}, r"got \(2, 2\)"),
        ({"x": np.full((2, 4, 4), None)}, "can't read x of .*a.npz"),
        ({"test_x": np.zeros((2, 4, 4), "uint8")}, "no part 'train' of .*a.npz; it has: test"),
    ],
)
def test_what_is_wrong_with_arrays_is_said_with_the_files_name(
    tmp_path: Path, arrays: dict[str, Array], message: str
) -> None:
    np.savez(tmp_path / "a.npz", **arrays)  # type: ignore[arg-type]  # of numpy's own keywords
    with pytest.raises(DataError, match=message) as caught:
        read_images(tmp_path / "a.npz")
    assert "a.npz" in str(caught.value)


def test_a_file_in_one_piece_has_no_test_part(tmp_path: Path, noise: Noise) -> None:
    with pytest.raises(DataError, match=r"one piece and has no part 'test'.*split\(images"):
        read_images(saved(tmp_path / "a.npz", x=noise(2, 4, 4)), "test")


@pytest.mark.parametrize("length", [0, 3, 40, 200])
def test_a_cut_file_is_named(tmp_path: Path, noise: Noise, length: int) -> None:
    path = saved(tmp_path / "a.npz", x=noise(4, 9, 9))
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(DataError, match=r"a\.npz is not an \.npz file, or damaged"):
        read_images(path)


def test_a_changed_byte_within_an_array_is_noticed(tmp_path: Path, noise: Noise) -> None:
    path = saved(tmp_path / "a.npz", x=noise(4, 9, 9))
    content = bytearray(path.read_bytes())
    content[200] ^= 255
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"can't read x of .*a\.npz"):
        read_images(path)


def jpeg(array: Array) -> bytes:
    image = pytest.importorskip("PIL.Image")
    buffer = io.BytesIO()
    image.fromarray(array).save(buffer, "JPEG")
    return buffer.getvalue()


def jpegs(pictures: list[bytes]) -> dict[str, Array]:
    offsets = np.cumsum([0, *(len(picture) for picture in pictures)])
    return {"train_jpeg": np.frombuffer(b"".join(pictures), np.uint8), "train_off": offsets}


def test_jpeg_bytes_are_decoded_as_pillow_does_and_grey_ones_join_in_colour(
    tmp_path: Path, noise: Noise
) -> None:
    image = pytest.importorskip("PIL.Image")
    pictures = [jpeg(noise(8, 6, 3)), jpeg(noise(8, 6)), jpeg(noise(8, 6, 3, seed=1))]
    path = saved(tmp_path / "a.npz", **jpegs(pictures), train_y=np.array([3, 1, 2], "uint8"))
    images = read_images(path)
    assert images.shape == (3, 8, 6)
    assert images.labels is not None
    assert images.labels.tolist() == [3, 1, 2]
    for pixels, picture in zip(images.pixels, pictures, strict=True):
        expected = np.asarray(image.open(io.BytesIO(picture)).convert("RGB"))
        assert (pixels.permute(1, 2, 0).numpy() == expected).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_off": np.array([0, 5, 3])}, "expected rising places in .* bytes in train_off of"),
        ({"train_off": np.array([0, 1 << 30])}, "expected rising places"),
        ({"train_off": np.array([0.0, 5.0])}, "whole numbers, in train_off of .*float64"),
        ({"train_off": np.array([0])}, r"got \(1,\)"),
        ({"train_jpeg": np.zeros(3)}, "bytes .* in train_jpeg of .*float64"),
        ({"train_jpeg": np.zeros(5000, "uint8")}, "can't read the picture 0 in train_jpeg of"),
        ({"train_y": np.zeros(3, "int64")}, "each of 2 images in train_y"),
    ],
)
def test_what_is_wrong_with_jpeg_bytes_is_said_and_nothing_is_kept(
    tmp_path: Path, noise: Noise, cache: Path, changes: dict[str, Array], message: str
) -> None:
    arrays = jpegs([jpeg(noise(8, 8)), jpeg(noise(8, 8, seed=1))])
    path = saved(tmp_path / "a.npz", **{**arrays, **changes})
    with pytest.raises(DataError, match=message):
        read_images(path)
    assert not list(cache.rglob("*"))
