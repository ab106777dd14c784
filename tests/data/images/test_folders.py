"""Pictures in folders: order, classes, parts, sizes, colours; and what is refused."""

from __future__ import annotations

import struct
import zlib
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
Write = Callable[..., Path]


def test_pictures_come_in_the_order_of_their_names_pixel_by_pixel(
    tmp_path: Path, noise: Noise, picture_file: Write
) -> None:
    arrays = [noise(5, 4, 3, seed=seed) for seed in range(3)]
    for name, array in zip(("b.png", "c.bmp", "a.PNG"), arrays, strict=True):
        picture_file(tmp_path / name, array)
    (tmp_path / "notes.txt").write_text("no picture")
    (tmp_path / "._a.png").write_text("hidden")
    images = read_images(tmp_path)
    assert images.labels is None
    assert images.source == str(tmp_path)
    expected = np.stack([arrays[2], arrays[0], arrays[1]])
    assert (images.pixels.permute(0, 2, 3, 1).numpy() == expected).all()


def test_folders_within_are_classes_in_the_order_of_their_names(
    tmp_path: Path, noise: Noise, picture_file: Write
) -> None:
    for name in ("dog/1.png", "cat/deep/2.png", "cat/1.png"):
        picture_file(tmp_path / name, noise(4, 4))
    labels = read_images(tmp_path).labels
    assert labels is not None
    assert labels.tolist() == [0, 0, 1]


def test_one_folder_or_loose_pictures_make_no_classes(
    tmp_path: Path, noise: Noise, picture_file: Write
) -> None:
    picture_file(tmp_path / "images" / "1.png", noise(4, 4))
    assert read_images(tmp_path).labels is None
    picture_file(tmp_path / "more" / "1.png", noise(4, 4))
    assert read_images(tmp_path).labels is not None
    picture_file(tmp_path / "loose.png", noise(4, 4))
    assert read_images(tmp_path).labels is None


def test_parts_share_the_classes_of_the_training_part(
    tmp_path: Path, noise: Noise, picture_file: Write
) -> None:
    for place in ("train/a/1", "train/b/1", "train/c/1", "val/b/1", "val/c/1", "val/c/2"):
        picture_file(tmp_path / f"{place}.png", noise(4, 4))
    (tmp_path / "annotations").mkdir()
    train, valid = read_images(tmp_path), read_images(tmp_path, "valid")
    assert train.labels is not None
    assert train.labels.tolist() == [0, 1, 2]
    assert valid.labels is not None
    assert valid.labels.tolist() == [1, 2, 2]
    assert valid.source == str(tmp_path / "val")
    picture_file(tmp_path / "val" / "zebra" / "1.png", noise(4, 4))
    with pytest.raises(DataError, match=r"classes of the training part in .*val, got also zebra"):
        read_images(tmp_path, "test")


def test_a_class_called_train_is_a_class(tmp_path: Path, noise: Noise, picture_file: Write) -> None:
    for name in ("train/1.png", "car/1.png"):
        picture_file(tmp_path / name, noise(4, 4))
    labels = read_images(tmp_path).labels
    assert labels is not None
    assert labels.tolist() == [0, 1]
    with pytest.raises(DataError, match="comes in one piece"):
        read_images(tmp_path, "test")


def test_links_to_folders_are_followed_but_not_in_circles(
    tmp_path: Path, noise: Noise, picture_file: Write
) -> None:
    for name in ("a", "b"):
        picture_file(tmp_path / "elsewhere" / name / "1.png", noise(4, 4))
        (tmp_path / "set").mkdir(exist_ok=True)
        (tmp_path / "set" / name).symlink_to(tmp_path / "elsewhere" / name)
        (tmp_path / "elsewhere" / name / "back").symlink_to(tmp_path / "set")
    assert len(read_images(tmp_path / "set")) == 2


def test_grey_pictures_among_coloured_ones_get_three_equal_channels(
    tmp_path: Path, noise: Noise, picture_file: Write
) -> None:
    picture_file(tmp_path / "1.png", noise(4, 4))
    assert read_images(tmp_path).shape == (1, 4, 4)
    picture_file(tmp_path / "2.png", noise(4, 4, 3))
    images = read_images(tmp_path)
    assert images.shape == (3, 4, 4)
    assert (images.pixels[0].numpy() == noise(4, 4)).all()


def test_grey_of_sixteen_bits_stays_exact(
    tmp_path: Path, noise: Noise, picture_file: Write
) -> None:
    array = noise(6, 5, below=1 << 16, kind="uint16")
    picture_file(tmp_path / "1.png", array)
    images = read_images(tmp_path)
    assert images.bits == 16
    assert images.pixels.dtype == torch.int32
    assert (images.pixels[0, 0].numpy() == array).all()
    picture_file(tmp_path / "2.png", noise(6, 5))
    with pytest.raises(DataError, match=r"16 bits in .*1\.png and 8 in .*2\.png"):
        read_images(tmp_path)


def test_palettes_black_and_white_and_opaque_pictures_are_read_without_loss(
    tmp_path: Path, noise: Noise
) -> None:
    image = pytest.importorskip("PIL.Image")
    array = noise(4, 4, 3, below=2) * 255
    picture = image.fromarray(array)
    picture.quantize(8).save(tmp_path / "palette.png")
    picture.convert("RGBA").save(tmp_path / "opaque.png")
    for name in ("palette.png", "opaque.png"):
        pixels = read_images(tmp_path / name).pixels
        assert (pixels[0].permute(1, 2, 0).numpy() == array).all()
    image.fromarray(array[..., 0]).convert("1").save(tmp_path / "bits.png")
    assert (read_images(tmp_path / "bits.png").pixels[0, 0].numpy() == array[..., 0]).all()


def test_photographs_are_turned_upright(tmp_path: Path, noise: Noise, picture_file: Write) -> None:
    image = pytest.importorskip("PIL.Image")
    exif = image.Exif()
    exif[0x0112] = 6  # Taken with the camera's right side up.
    path = picture_file(tmp_path / "1.png", noise(4, 6, 3), exif=exif)
    pixels = read_images(path).pixels[0].permute(1, 2, 0).numpy()
    assert (pixels == np.rot90(noise(4, 6, 3), k=-1)).all()


def png_of_deep_colour() -> bytes:
    """2 x 2 pixels of 16 bits a colour, chunk by chunk."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    head = struct.pack(">IIBBBBB", 2, 2, 16, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + bytes(range(12))) * 2)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def refused_pictures() -> dict[str, tuple[str, Callable[[Path], object], str]]:
    def saved(mode: str, **settings: Any) -> Callable[[Path], object]:
        def write(path: Path) -> None:
            image = pytest.importorskip("PIL.Image")
            image.new(mode, (4, 4)).save(path, **settings)

        return write

    def text(path: Path) -> None:
        path.write_text("<html>not found</html>")

    return {
        "text": ("a.jpg", text, "can't read the picture .*a.jpg.*replace or remove"),
        "empty": ("a.png", Path.touch, "can't read the picture .*a.png"),
        "transparent": ("a.png", saved("RGBA"), "without transparent places, got some in .*a.png"),
        "transparent grey": ("a.png", saved("LA"), "without transparent places"),
        "colour key": ("a.png", saved("RGB", transparency=(0, 0, 0)), "without transparent"),
        "cmyk": ("a.jpg", saved("CMYK"), "grey or red, green and blue, got CMYK in .*a.jpg"),
        "float": ("a.tif", saved("F"), "grey or red, green and blue, got F in .*a.tif"),
        "deep": ("a.png", lambda path: path.write_bytes(png_of_deep_colour()), "8 bits a colour"),
        "levels": (
            "a.ppm",
            lambda path: path.write_bytes(b"P6 1 1 100\n" + b"\1" * 3),
            "8 bits a colour.*a.ppm",
        ),
    }


@pytest.mark.parametrize("kind", refused_pictures())
def test_a_picture_that_can_not_be_exact_is_refused_by_name(
    tmp_path: Path, cache: Path, kind: str
) -> None:
    name, write, message = refused_pictures()[kind]
    folder = tmp_path / "folder"
    folder.mkdir()
    write(folder / name)
    with pytest.raises(DataError, match=message):
        read_images(folder)
    assert not list(cache.rglob("*"))


@pytest.mark.parametrize("suffix", ["png", "jpg", "bmp", "tif", "webp", "gif", "ppm"])
def test_a_cut_picture_is_refused_whatever_its_format(
    tmp_path: Path, noise: Noise, picture_file: Write, suffix: str
) -> None:
    path = picture_file(tmp_path / f"a.{suffix}", noise(16, 16))
    whole = path.read_bytes()
    read_images(path)
    for share in (0.05, 0.3, 0.7):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(DataError, match=f"can't read the picture .*a.{suffix}"):
            read_images(path)


def test_pictures_of_several_sizes_need_a_size(
    tmp_path: Path, noise: Noise, picture_file: Write
) -> None:
    picture_file(tmp_path / "1.png", noise(4, 8))
    picture_file(tmp_path / "2.png", np.repeat(np.repeat(noise(2, 2), 3, 0), 3, 1))
    with pytest.raises(DataError, match=r"4 x 8 in .*1\.png and 6 x 6 in .*2\.png.*size="):
        read_images(tmp_path)
    pixels = read_images(tmp_path, size=2).pixels
    # By hand: the middle square's 2 x 2 blocks are averaged; blocks of equal pixels stay.
    middle = noise(4, 8)[:, 2:6].reshape(2, 2, 2, 2).mean(axis=(1, 3))
    assert (pixels[0, 0].numpy() == np.round(middle)).all()
    assert (pixels[1, 0].numpy() == noise(2, 2)).all()


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no picture")
    with pytest.raises(DataError, match=r"holds no pictures; expected files that end in .*\.png"):
        read_images(tmp_path)


def test_files_are_read_in_the_order_given(
    tmp_path: Path, noise: Noise, picture_file: Write
) -> None:
    files = [picture_file(tmp_path / f"{n}.png", noise(4, 4, seed=n)) for n in range(3)]
    images = read_images([files[2], str(files[0])])
    assert (images.pixels[0, 0].numpy() == noise(4, 4, seed=2)).all()
    assert (images.pixels[1, 0].numpy() == noise(4, 4, seed=0)).all()
    assert images.source == f"{files[2]} and 1 more"
    with pytest.raises(DataError, match=r"there is no file .*none\.png"):
        read_images([tmp_path / "none.png"])
    with pytest.raises(DataError, match="at least one picture"):
        read_images([])
