"""Squared error, PSNR and SSIM, against NumPy and SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter

from smalti.errors import ShapeError
from smalti.recipes.images.quality import psnr, ssim, unit_square_error


def scipy_ssim(one: np.ndarray, other: np.ndarray, span: float, window: int) -> float:
    """As scikit-image computes it: Gaussian weights, borders left out, colours averaged."""
    radius = window // 2

    def local(x: np.ndarray) -> np.ndarray:
        return gaussian_filter(x, 1.5, radius=radius)

    values = []
    for a, b in zip(one.astype(float), other.astype(float), strict=True):
        mean_a, mean_b = local(a), local(b)
        spread_a, spread_b = local(a * a) - mean_a**2, local(b * b) - mean_b**2
        joint = local(a * b) - mean_a * mean_b
        c1, c2 = (0.01 * span) ** 2, (0.03 * span) ** 2
        found = (2 * mean_a * mean_b + c1) * (2 * joint + c2)
        found /= (mean_a**2 + mean_b**2 + c1) * (spread_a + spread_b + c2)
        inside = slice(radius, -radius) if radius else slice(None)
        values.append(found[inside, inside].mean())
    return float(np.mean(values))


@pytest.mark.parametrize(("side", "bits", "window"), [(32, 8, 11), (11, 8, 11), (8, 5, 7)])
def test_similarity_equals_the_definition_computed_with_scipy(
    side: int, bits: int, window: int
) -> None:
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(2**bits, (3, 3, side, side), generator=generator, dtype=torch.uint8)
    noise = torch.randint(0, 2 ** (bits - 2), pixels.shape, generator=generator)
    again = (pixels.int() + noise.int()).clamp(max=2**bits - 1).to(torch.uint8)
    found = ssim(pixels, again, bits)
    expected = [
        scipy_ssim(a, b, 2**bits - 1, window)
        for a, b in zip(pixels.numpy(), again.numpy(), strict=True)
    ]
    assert found.tolist() == pytest.approx(expected, abs=1e-9)


def test_an_image_is_most_similar_to_itself() -> None:
    pixels = torch.randint(256, (2, 1, 16, 16), dtype=torch.uint8)
    assert ssim(pixels, pixels, 8).tolist() == pytest.approx([1.0, 1.0])
    assert unit_square_error(pixels, pixels, 8).tolist() == [0.0, 0.0]


def test_white_is_one_away_from_black_at_any_depth() -> None:
    for bits, kind in ((5, torch.uint8), (8, torch.uint8), (12, torch.int32)):
        black = torch.zeros(1, 1, 2, 2, dtype=kind)
        white = torch.full_like(black, 2**bits - 1)
        assert unit_square_error(black, white, bits).tolist() == [1.0]


def test_a_hundredfold_smaller_error_is_twenty_decibels_more() -> None:
    assert psnr(1.0) == 0
    assert psnr(0.01) == pytest.approx(20)
    assert psnr(0.0) == math.inf


def test_images_of_different_shapes_are_refused() -> None:
    with pytest.raises(ShapeError, match="equal shapes"):
        ssim(torch.zeros(1, 1, 8, 8), torch.zeros(1, 1, 8, 9), 8)
