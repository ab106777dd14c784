"""How far the gradient that an encoder gets through its codes is from the one without them.

Reference:
    Huh, Cheung, Agrawal, Isola, "Straightening Out the Straight-Through Estimator", ICML
    2023, section 3. Chen, Reddy, Chen, Liu, "Balance of Number of Embedding and their
    Dimensions in Vector Quantization", NeurIPS 2024, arXiv:2407.04939, equation 5.

Differs from the paper:
    Both gradients are of the same weights and the same images, with respect to the maps that
    the encoder gives. The way without codes keeps everything but the rounding: projections
    around a codebook, and the choice of a codebook from a pool. The released code takes the
    two at different weights and leaves the projections out of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

from smalti.autoencoders.base import Autoencoder
from smalti.autoencoders.coded import CodedAutoencoder
from smalti.errors import ConfigError
from smalti.quantizers.base import Quantizer
from smalti.quantizers.gradients import Gradient
from smalti.quantizers.identity import Identity


class GradientGap(NamedTuple):
    """Lengths of differences, an image each, averaged over the images."""

    size: float
    """The length of the difference between the two gradients."""
    relative: float
    """The same as a share of the length of the gradient without codes."""


def gradient_gap(autoencoder: Autoencoder, pixels: Tensor) -> GradientGap:
    """The gap of the likelihood's loss at these images.

    The model is looked at as in evaluation: nothing is drawn, and nothing learns.

    Args:
        autoencoder: One whose quantizers round vectors to codewords.
        pixels: Images.
    """
    if not isinstance(autoencoder, CodedAutoencoder):
        raise ConfigError(f"{type(autoencoder).__name__} has no codes, so there is no gap")
    levels = autoencoder.levels()
    modes = {module: module.training for module in autoencoder.modules()}
    autoencoder.eval()
    try:
        with torch.no_grad():
            maps = autoencoder.maps(autoencoder.network_input(pixels))
        maps = [one.detach().requires_grad_() for one in maps]

        def gradient() -> Tensor:
            vectors = autoencoder.descend(maps, lambda level, x: levels[level](x).vectors)
            # A sum over images, so that each gets the gradient of its own loss.
            loss = autoencoder.likelihood.loss(autoencoder.join(vectors), pixels) * len(pixels)
            return torch.cat([one.flatten(1) for one in torch.autograd.grad(loss, maps)], dim=1)

        quantized = gradient()
        with _without_rounding(levels):
            plain = gradient()
    finally:
        for module, mode in modes.items():
            module.training = mode
    gaps, lengths = (quantized - plain).norm(dim=1), plain.norm(dim=1)
    shares = gaps / lengths.clamp(min=torch.finfo(lengths.dtype).tiny)
    return GradientGap(float(gaps.mean()), float(shares.mean()))


@contextmanager
def _without_rounding(levels: Sequence[Quantizer]) -> Iterator[None]:
    """Lets vectors cross the choice of a codeword unchanged, wherever one is chosen."""
    crossings: dict[Quantizer, Gradient] = {}
    for quantizer in _members(levels):
        crossing = getattr(quantizer, "gradient", None)
        if isinstance(crossing, Gradient):
            crossings[quantizer] = crossing
        elif len(_members([quantizer])) == 1 and not isinstance(quantizer, Identity):
            raise ConfigError(
                f"{type(quantizer).__name__} does not round vectors to codewords, so there is no "
                "gap; use vector, soft_em, or product, depthwise, repeated, residual or adaptive "
                "of them"
            )
    try:
        for quantizer in crossings:
            vars(quantizer)["gradient"] = _unchanged
        yield
    finally:
        for quantizer, crossing in crossings.items():
            vars(quantizer)["gradient"] = crossing


def _members(quantizers: Sequence[Quantizer]) -> list[Quantizer]:
    """Quantizers and the quantizers inside of them."""
    modules = [module for quantizer in quantizers for module in quantizer.modules()]
    return [module for module in modules if isinstance(module, Quantizer)]


def _unchanged(x: Tensor, chosen: Tensor) -> Tensor:
    del chosen
    return x
