"""How far a reconstruction is from its image: squared error, PSNR and SSIM.

Reference:
    Wang, Bovik, Sheikh, Simoncelli, "Image Quality Assessment: From Error Visibility to
    Structural Similarity", IEEE Transactions on Image Processing 13 (4), 2004.

Differs from the paper:
    Colours are three images, whose values are averaged. Images that are smaller than the
    window of 11 pixels get one that fits.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from smalti.errors import ShapeError, require

# The paper's window, and its constants for flat and dark places.
WINDOW, SPREAD = 11, 1.5
DARK, FLAT = 0.01, 0.03


def unit_square_error(pixels: Tensor, again: Tensor, bits: int) -> Tensor:
    """The mean squared error ``(batch,)`` of each image where black is 0 and white is 1."""
    _require_pair(pixels, again)
    error = (pixels.double() - again.double()) / (2**bits - 1)
    means: Tensor = error.square().flatten(1).mean(dim=1)
    return means


def psnr(mse: float) -> float:
    """A squared error of images from 0 to 1 in decibels; infinite where there is none.

    Example:
        >>> psnr(0.001)
        30.0
    """
    return -10 * math.log10(mse) if mse > 0 else math.inf


def ssim(pixels: Tensor, again: Tensor, bits: int) -> Tensor:
    """The structural similarity ``(batch,)`` of each image with its reconstruction.

    Args:
        pixels: Images ``(batch, channels, height, width)`` of whole numbers.
        again: Their reconstructions.
        bits: Of a subpixel.
    """
    _require_pair(pixels, again)
    side = min(WINDOW, *pixels.shape[2:])
    window = _window(side - 1 + side % 2).to(pixels.device)
    one, other = (x.double().flatten(0, 1)[:, None] for x in (pixels, again))

    def local(x: Tensor) -> Tensor:
        return functional.conv2d(functional.conv2d(x, window[..., None]), window[:, :, None])

    mean, mean_again = local(one), local(other)
    spread = local(one * one) - mean.square()
    spread_again = local(other * other) - mean_again.square()
    joint = local(one * other) - mean * mean_again
    dark, flat = ((factor * (2**bits - 1)) ** 2 for factor in (DARK, FLAT))
    found = (2 * mean * mean_again + dark) * (2 * joint + flat)
    found = found / (mean.square() + mean_again.square() + dark)
    found = found / (spread + spread_again + flat)
    means: Tensor = found.view(len(pixels), -1).mean(dim=1)
    return means


def _window(side: int) -> Tensor:
    """A Gaussian ``(1, 1, side)`` that adds up to 1."""
    places = torch.arange(side, dtype=torch.float64) - side // 2
    weights = torch.exp(-places.square() / (2 * SPREAD**2))
    return (weights / weights.sum())[None, None]


def _require_pair(pixels: Tensor, again: Tensor) -> None:
    require(
        pixels.dim() == 4 and pixels.shape == again.shape,
        f"expected two equal shapes (batch, channels, height, width), got {tuple(pixels.shape)} "
        f"and {tuple(again.shape)}",
        ShapeError,
    )
