"""Every source is found by its name or path; what is missing is said with what to do."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from smalti.data.images import known_names, read_images, write_images
from smalti.errors import ConfigError, DataError, MissingExtraError

Array = np.ndarray[Any, np.dtype[Any]]
Noise = Callable[..., Array]
Write = Callable[..., Path]


def test_the_digits_are_scikit_learns_to_the_last_value() -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    digits = datasets.load_digits()
    images = read_images("digits")
    assert images.bits == 5
    assert (images.pixels[:, 0].numpy() == digits.images).all()
    assert images.labels is not None
    assert (images.labels.numpy() == digits.target).all()
    with pytest.raises(DataError, match="digits comes in one piece"):
        read_images("digits", "test")


def test_known_sets_are_found_in_the_folder_of_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noise: Noise, idx_bytes: Callable[..., bytes]
) -> None:
    monkeypatch.setenv("SMALTI_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "images" / "mnist"
    place.mkdir(parents=True)
    (place / "train-images-idx3-ubyte").write_bytes(idx_bytes(noise(2, 4, 4)))
    assert len(read_images("mnist")) == 2
    np.savez(tmp_path / "images" / "cifar10_10k2k.npz", train_x=noise(3, 4, 4, 3))
    assert len(read_images("cifar10")) == 3
    np.savez(tmp_path / "images" / "cifar10.npz", train_x=noise(5, 4, 4, 3))
    assert len(read_images("cifar10")) == 5


def test_tiny_imagenet_is_read_as_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noise: Noise, picture_file: Write
) -> None:
    monkeypatch.setenv("SMALTI_DATA", str(tmp_path))
    place = tmp_path / "images" / "tiny-imagenet-200"
    for name in ("train/n02/images/n02_0", "train/n01/images/n01_0", "val/images/val_0"):
        picture_file(place / f"{name}.JPEG", noise(4, 4, 3))
    (place / "wnids.txt").write_text("n01\nn02\n")
    train, valid = read_images("tiny_imagenet"), read_images("tiny_imagenet", "valid")
    assert train.labels is not None
    assert train.labels.tolist() == [0, 1]
    assert len(valid) == 1
    assert valid.labels is None


@pytest.mark.parametrize("name", ["cifar10", "fashion_mnist", "mnist", "tiny_imagenet"])
def test_a_known_set_that_is_not_there_says_where_it_is_public(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("SMALTI_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        DataError, match=f"images/{name}.npz in .*public at http.*also good: images"
    ):
        read_images(name)


def test_a_path_wins_over_a_name_when_it_is_written_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noise: Noise, picture_file: Write
) -> None:
    picture_file(tmp_path / "digits" / "1.png", noise(4, 4))
    monkeypatch.chdir(tmp_path)
    assert len(read_images("./digits")) == len(read_images(Path("digits"))) == 1


def test_an_unknown_source_lists_what_is_known(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no file or folder .*cifar1.*cifar10, digits, fashion_mn"):
        read_images(tmp_path / "cifar1")
    assert known_names() == ["cifar10", "digits", "fashion_mnist", "mnist", "tiny_imagenet"]


def test_a_size_makes_squares_of_arrays_too(tmp_path: Path, noise: Noise) -> None:
    np.savez(tmp_path / "a.npz", x=noise(2, 4, 8))
    pixels = read_images(tmp_path / "a.npz", size=4).pixels
    assert (pixels[:, 0].numpy() == noise(2, 4, 8)[:, :, 2:6]).all()


def test_grey_can_have_three_channels_but_colour_is_not_made_grey(
    tmp_path: Path, noise: Noise
) -> None:
    np.savez(tmp_path / "grey.npz", x=noise(2, 4, 4))
    np.savez(tmp_path / "colour.npz", x=noise(2, 4, 4, 3))
    pixels = read_images(tmp_path / "grey.npz", channels=3).pixels
    assert pixels.shape == (2, 3, 4, 4)
    assert (pixels.numpy() == noise(2, 4, 4)[:, None]).all()
    assert read_images(tmp_path / "colour.npz", channels=3).shape == (3, 4, 4)
    assert read_images(tmp_path / "grey.npz", channels=1).shape == (1, 4, 4)
    with pytest.raises(DataError, match=r"expected grey images in .*colour\.npz.*channels=3"):
        read_images(tmp_path / "colour.npz", channels=1)


@pytest.mark.parametrize(
    "settings",
    [
        {"split": "half"},
        {"split": 3},
        {"size": 0},
        {"size": 2.5},
        {"channels": 4},
        {"source": 3},
        {"source": [3]},
        {"source": None},
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"expected|must be"):
        read_images(**{"source": "digits", **settings})


def test_missing_packages_are_named_with_their_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noise: Noise, picture_file: Write
) -> None:
    path = picture_file(tmp_path / "a.png", noise(4, 4))
    for module in ("PIL.Image", "PIL.ImageOps", "sklearn.datasets", "datasets"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"pillow: pip install \"smalti\[images\]\""):
        read_images(path)
    with pytest.raises(MissingExtraError, match=r"pillow: pip install \"smalti\[images\]\""):
        write_images(torch.zeros(1, 1, 4, 4, dtype=torch.uint8), tmp_path / "new", ["a"])
    assert not (tmp_path / "new").exists()
    with pytest.raises(MissingExtraError, match="scikit-learn: pip install scikit-learn"):
        read_images("digits")
    with pytest.raises(MissingExtraError, match="datasets: pip install datasets"):
        read_images("hub:ylecun/mnist")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "file", "train", "test", "shape", "classes"),
    [
        ("cifar10", "cifar10_10k2k", 10_000, 2_000, (3, 32, 32), 10),
        ("mnist", "mnist", 60_000, 10_000, (1, 28, 28), 10),
        ("fashion_mnist", "fashion_mnist", 60_000, 10_000, (1, 28, 28), 10),
    ],
)
def test_public_sets_are_read_as_they_are_described(
    public: Callable[[str], Path],
    name: str,
    file: str,
    train: int,
    test: int,
    shape: tuple[int, ...],
    classes: int,
) -> None:
    public(f"images/{file}.npz")
    for part, count in (("train", train), ("test", test)):
        images = read_images(name, part)
        assert len(images) == count
        assert images.shape == shape
        assert images.labels is not None
        counts = torch.bincount(images.labels)
        assert len(counts) == classes
        # By their makers: balanced, MNIST nearly so.
        assert bool((counts > 0.85 * count / classes).all())


@pytest.mark.data
def test_tiny_imagenet_is_colour_and_its_grey_pictures_are_grey(
    public: Callable[[str], Path],
) -> None:
    path = public("images/tiny_imagenet_10k2k_jpeg.npz")
    image = pytest.importorskip("PIL.Image")
    import io

    images = read_images("tiny_imagenet", "test")
    assert len(images) == 2_000
    assert images.shape == (3, 64, 64)
    with np.load(path) as archive:
        data, offsets = archive["val_jpeg"], archive["val_off"]
        labels = archive["val_y"]
    assert images.labels is not None
    assert images.labels.tolist() == labels.tolist()
    modes = set()
    for place in range(0, 2_000, 20):
        content = data[offsets[place] : offsets[place + 1]].tobytes()
        with image.open(io.BytesIO(content)) as picture:
            modes.add(picture.mode)
            expected = np.asarray(picture.convert("RGB"))
        assert (images.pixels[place].permute(1, 2, 0).numpy() == expected).all()
    assert modes == {"L", "RGB"}
    again = read_images("tiny_imagenet", "test")
    assert again.fingerprint() == images.fingerprint()
