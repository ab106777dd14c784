"""Sets of the hub are read through datasets, from local copies here; without one they say so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smalti.data.images import read_images
from smalti.errors import DataError

Array = np.ndarray[Any, np.dtype[Any]]
Noise = Callable[..., Array]
Write = Callable[..., Path]
pytest.importorskip("datasets")


@pytest.fixture
def copied(
    tmp_path: Path, noise: Noise, picture_file: Write, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A copy of a set in the layout of the hub."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "hub-cache")
    place = tmp_path / "set"
    for number, name in enumerate(
        ("train/cat/1", "train/dog/1", "train/dog/2", "validation/cat/1")
    ):
        picture_file(place / f"{name}.png", noise(4, 6, seed=number))
    return place


def test_a_copied_set_gives_pixels_and_classes(copied: Path, noise: Noise) -> None:
    images = read_images(f"hub:{copied}")
    expected = np.stack([noise(4, 6, seed=number) for number in range(3)])
    assert (images.pixels[:, 0].numpy() == expected).all()
    assert images.labels is not None
    assert images.labels.tolist() == [0, 1, 1]
    assert images.source == f"hub:{copied}, train"
    assert len(read_images(f"hub:{copied}", "test")) == 1
    assert read_images(f"hub:{copied}", size=2).shape == (1, 2, 2)


def test_a_set_that_can_not_be_had_says_what_to_do() -> None:
    with pytest.raises(DataError, match=r"can't get hub:nobody/nothing: .*network or a copy"):
        read_images("hub:nobody/nothing")
    with pytest.raises(DataError, match="expected the name of a set behind hub:"):
        read_images("hub:")


def test_a_set_without_pictures_is_refused(copied: Path, tmp_path: Path) -> None:
    del copied
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "train.csv").write_text("text,label\na,1\nb,2\n")
    with pytest.raises(DataError, match=r"expected a column of pictures in .*got: text, label"):
        read_images(f"hub:{tmp_path / 'texts'}")
