"""Augmentations move whole pixels, at random and from the generator alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from smalti.data.images import (
    Augmentation,
    Flip,
    FlipCrop,
    augmentations,
    build_augmentation,
)
from smalti.errors import ConfigError, ShapeError
from smalti.specs import as_plain

Noise = Callable[..., np.ndarray[Any, np.dtype[Any]]]
NAMES = augmentations.names()


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def batch(noise: Noise, *shape: int) -> Tensor:
    return torch.from_numpy(noise(*shape))


def test_the_three_are_known_by_name() -> None:
    assert NAMES == ["flip", "flip-crop", "none"]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_images_and_the_input_stays(noise: Noise, name: str) -> None:
    pixels = batch(noise, 40, 3, 8, 6)
    before, state = pixels.clone(), torch.get_rng_state()
    varied = build_augmentation(name)
    made = varied(pixels, seeded())
    assert torch.equal(made, varied(pixels, seeded()))
    assert name == "none" or not torch.equal(made, varied(pixels, seeded(1)))
    assert made.shape == pixels.shape
    assert made.dtype == pixels.dtype
    assert torch.equal(pixels, before)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_batch_one_pixel_and_deep_pixels_work(name: str) -> None:
    varied = build_augmentation(name)
    assert varied(torch.zeros(0, 3, 8, 8, dtype=torch.uint8), seeded()).shape == (0, 3, 8, 8)
    one = torch.full((5, 1, 1, 1), 60000, dtype=torch.int32)
    assert torch.equal(varied(one, seeded()), one)


@pytest.mark.parametrize("name", NAMES)
def test_settings_are_plain_data_and_back(name: str) -> None:
    made = build_augmentation(name)
    assert isinstance(made, Augmentation)
    assert as_plain(made)["kind"] == name
    assert build_augmentation(as_plain(made)) == made
    assert build_augmentation(made) is made


def test_nothing_changes_nothing(noise: Noise) -> None:
    pixels = batch(noise, 4, 3, 8, 8)
    assert torch.equal(build_augmentation("none")(pixels, seeded()), pixels)


def test_a_flip_mirrors_about_half_of_the_images_and_leaves_the_others(noise: Noise) -> None:
    pixels = noise(400, 3, 4, 5)
    made = Flip()(torch.from_numpy(pixels), seeded()).numpy()
    same = (made == pixels).all(axis=(1, 2, 3))
    mirrored = (made == pixels[..., ::-1]).all(axis=(1, 2, 3))
    assert (same ^ mirrored).all()
    # Of 400 fair coins, fewer than 150 or more than 250 heads come once in 10 million times.
    assert 150 < mirrored.sum() < 250


def test_a_crop_is_a_window_of_the_image_padded_by_mirroring(noise: Noise) -> None:
    pixels = noise(300, 2, 16, 8)
    made = FlipCrop()(torch.from_numpy(pixels), seeded()).numpy()
    found = []
    for image, old in zip(made, pixels, strict=True):
        padded = np.pad(old, ((0, 0), (2, 2), (1, 1)), mode="reflect")
        windows = {
            (flip, down, across): window[..., ::-1] if flip else window
            for down in range(5)
            for across in range(3)
            for window in [padded[:, down : down + 16, across : across + 8]]
            for flip in (False, True)
        }
        found.append([place for place, window in windows.items() if (window == image).all()])
    assert all(len(places) == 1 for places in found)
    # Each of the 30 ways is expected 10 times; that one never comes is one in a thousand.
    assert len({places[0] for places in found}) == 30


def test_small_images_are_moved_less_and_the_smallest_not_at_all(noise: Noise) -> None:
    pixels = batch(noise, 50, 1, 4, 4)
    made = FlipCrop()(pixels, seeded())
    as_it_is = (made == pixels).flatten(1).all(1)
    mirrored = (made == pixels.flip(-1)).flatten(1).all(1)
    assert bool((as_it_is | mirrored).all())


@pytest.mark.parametrize("choice", ["turn", {"kind": "flip", "shift": 1}, {"shift": 1}, 3])
def test_unknown_choices_are_refused(choice: Any) -> None:
    with pytest.raises(ConfigError, match=r"flip|kind"):
        build_augmentation(choice)


@pytest.mark.parametrize("shift", [-0.1, 0.6])
def test_impossible_shifts_are_refused(shift: float) -> None:
    with pytest.raises(ConfigError, match="shift must be"):
        FlipCrop(shift)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_a_batch_of_whole_numbers_is_refused(name: str) -> None:
    for bad in (torch.zeros(3, 8, 8, dtype=torch.uint8), torch.zeros(2, 3, 8, 8)):
        with pytest.raises(ShapeError, match="expected images"):
            build_augmentation(name)(bad, seeded())
