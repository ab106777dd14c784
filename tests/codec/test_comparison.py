"""PNG and WebP of the same images, counted as files on a disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from smalti.codec import other_bytes

Image = pytest.importorskip("PIL.Image")


@pytest.mark.parametrize("channels", [1, 3])
def test_bytes_are_those_of_files_that_hold_the_very_pixels(channels: int, tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    # Slopes with a little noise: something to predict.
    slopes = np.add.outer(np.arange(20), np.arange(24))[..., None] * 3
    arrays = [
        (slopes + chance.integers(0, 9, (20, 24, channels))).astype(np.uint8) for _ in range(3)
    ]
    sizes = {"png": 0, "webp": 0}
    for number, array in enumerate(arrays):
        picture = Image.fromarray(array if channels == 3 else array[..., 0])
        for name, settings in (
            ("png", {"optimize": True}),
            ("webp", {"lossless": True, "method": 6, "quality": 100, "exact": True}),
        ):
            path = tmp_path / f"{number}.{name}"
            picture.save(path, **settings)
            found = np.asarray(Image.open(path).convert("RGB"))
            assert np.array_equal(found, np.broadcast_to(array, (20, 24, 3)))
            sizes[name] += path.stat().st_size
    pixels = torch.from_numpy(np.stack(arrays)).permute(0, 3, 1, 2)
    assert other_bytes(pixels, 8) == sizes


def test_formats_that_can_not_hold_images_say_nothing() -> None:
    deep = torch.randint(2**12, (2, 1, 8, 8), dtype=torch.int32)
    found = other_bytes(deep, 12)
    assert found["webp"] is None
    # Twelve random bits a pixel can't be made smaller.
    assert found["png"] is not None
    assert found["png"] > 2 * 64 * 1.5
    assert other_bytes(torch.zeros(1, 1, 1, 16384, dtype=torch.uint8), 8)["webp"] is None
