"""Area averaging agrees with exact fractions and with Pillow, and rounds to integers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from smalti.data.images import Images, resized
from smalti.data.images.resizing import averaged
from smalti.errors import ConfigError

Array = np.ndarray[Any, np.dtype[Any]]
Noise = Callable[..., Array]


def covered(start: Fraction, end: Fraction, pixel: int) -> Fraction:
    return max(Fraction(0), min(end, Fraction(pixel + 1)) - max(start, Fraction(pixel)))


def by_fractions(image: Array, height: int, width: int) -> list[list[int]]:
    """Means over areas with exact fractions, pixel by pixel; halves go to the even number."""
    down, across = Fraction(image.shape[0], height), Fraction(image.shape[1], width)
    made = []
    for row in range(height):
        line = []
        for column in range(width):
            total = sum(
                int(value)
                * covered(row * down, (row + 1) * down, y)
                * covered(column * across, (column + 1) * across, x)
                for (y, x), value in np.ndenumerate(image)
            )
            line.append(round(Fraction(total) / (down * across)))
        made.append(line)
    return made


@pytest.mark.parametrize("size", [(3, 3), (2, 6), (4, 5), (1, 1), (6, 6), (12, 9)])
def test_every_pixel_is_the_rounded_mean_of_its_area(noise: Noise, size: tuple[int, int]) -> None:
    pixels = noise(2, 2, 6, 6)
    made = resized(Images(torch.from_numpy(pixels)), size)
    assert made.pixels.dtype == torch.uint8
    for image in range(2):
        for channel in range(2):
            expected = by_fractions(pixels[image, channel], *size)
            assert made.pixels[image, channel].tolist() == expected


def test_halves_go_to_the_even_number() -> None:
    pixels = torch.tensor([[[[0, 1], [0, 1]]], [[[1, 2], [1, 2]]]], dtype=torch.uint8)
    # By hand: the means are 0.5 and 1.5.
    assert resized(Images(pixels), 1).pixels.flatten().tolist() == [0, 2]


def test_halving_is_pillows_box_but_for_halves(noise: Noise) -> None:
    image = pytest.importorskip("PIL.Image")
    pixels = noise(1, 1, 32, 32)
    box = np.asarray(image.fromarray(pixels[0, 0]).reduce(2)).astype(int)
    sums = pixels[0, 0].reshape(16, 2, 16, 2).astype(int).sum(axis=(1, 3))
    made = resized(Images(torch.from_numpy(pixels)), 16).pixels[0, 0].numpy()
    clear = sums % 4 != 2
    assert clear.sum() > 100
    assert (made[clear] == box[clear]).all()
    assert (np.abs(made - sums / 4) <= 0.5).all()


def test_a_larger_image_repeats_pixels_and_the_way_back_is_exact(noise: Noise) -> None:
    pixels = torch.from_numpy(noise(2, 3, 4, 4))
    larger = resized(Images(pixels), 12)
    expected = pixels.repeat_interleave(3, 2).repeat_interleave(3, 3)
    assert torch.equal(larger.pixels, expected)
    assert torch.equal(resized(larger, 4).pixels, pixels)


def test_sixteen_bits_stay_exact(noise: Noise) -> None:
    pixels = noise(1, 1, 6, 6, below=1 << 16, kind="int32")
    made = resized(Images(torch.from_numpy(pixels), bits=16), 4)
    assert made.pixels.dtype == torch.int32
    assert made.pixels[0, 0].tolist() == by_fractions(pixels[0, 0], 4, 4)


def test_a_white_image_stays_white_at_every_size() -> None:
    white = torch.full((1, 1, 13, 13), 255, dtype=torch.uint8)
    for size in range(1, 30):
        assert bool((averaged(white, size, size) == 255).all())


def test_labels_bits_and_source_are_kept() -> None:
    images = Images(torch.full((2, 1, 4, 4), 3, dtype=torch.uint8), 2, torch.tensor([5, 6]), "here")
    made = resized(images, 2)
    assert (made.bits, made.source, made.labels) == (2, "here", images.labels)


def test_many_images_in_blocks_are_as_one_by_one(
    noise: Noise, monkeypatch: pytest.MonkeyPatch
) -> None:
    pixels = torch.from_numpy(noise(7, 3, 6, 6))
    expected = torch.cat([averaged(image[None], 4, 4) for image in pixels])
    monkeypatch.setattr("smalti.data.images.resizing.BLOCK", 2 * 3 * 36)
    assert torch.equal(averaged(pixels, 4, 4), expected)
    assert len(averaged(pixels[:0], 4, 4)) == 0


@pytest.mark.parametrize("size", [0, -1, (4,), (4, 0), (4, 4.0), 2.5])
def test_impossible_sizes_are_refused(size: Any) -> None:
    with pytest.raises(ConfigError, match="height"):
        resized(Images(torch.zeros(1, 1, 4, 4, dtype=torch.uint8)), size)


def test_one_number_is_not_enough_for_oblong_images() -> None:
    oblong = Images(torch.zeros(1, 1, 4, 6, dtype=torch.uint8))
    with pytest.raises(ConfigError, match=r"4 x 6; give \(height, width\)"):
        resized(oblong, 2)
    assert resized(oblong, (2, 3)).shape == (1, 2, 3)
