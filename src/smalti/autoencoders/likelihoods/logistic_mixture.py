"""Discretised mixture of logistics: a pixel's values are bins under a few smooth bumps.

Reference:
    Salimans, Karpathy, Chen, Kingma, "PixelCNN++: Improving the PixelCNN with Discretized
    Logistic Mixture Likelihood and Other Modifications", ICLR 2017, arXiv:1701.05517,
    sections 2.1 and 2.2. Fostiropoulos, Boehm, "Implicit Feature Decoupling with Depthwise
    Quantization", CVPR 2022, arXiv:2203.08080, appendix A.4 (10 components, 8 bits).

Differs from the paper:
    Any number of channels and any bit depth. The mass of a bin is computed as a product that
    does not cancel, ``sig(a) - sig(b) = sig(a) sig(-b) (1 - exp(b - a))``; the published code
    takes a difference and, where it is small, a density in its place, and then the masses of
    all values do not add up to 1. Scales are held to a range that follows the width of a bin,
    and a scale at its bound still learns its way back. Parameters are ordered (weights; means
    of all channels; log-scales; couplings), each for all components.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from smalti.autoencoders.likelihoods.base import Likelihood, draw, likelihoods
from smalti.layers.applying import applied
from smalti.quantizers.settings import count

# The published floor of log-scales, of 8 bits: a quarter of half a bin.
FLOOR_OF_8_BITS = -7.0
# Beyond this a logistic is flat over all values.
CEILING = 7.0
# Keeps a draw off 0 and 1, where a logistic is infinite.
NEAR_ZERO = 1e-7


@likelihoods.register("logistic_mixture")
class LogisticMixture(Likelihood):
    """``components`` logistics a pixel; a channel's means follow the channels before it.

    Args:
        channels: Of the images.
        bits: Of a subpixel.
        components: How many bumps.
    """

    def __init__(self, channels: int, bits: int = 8, *, components: int = 10) -> None:
        super().__init__(channels, bits)
        self.components = count("components", components)
        self._half = 1 / (self.values - 1)
        self._floor = FLOOR_OF_8_BITS + math.log(255 * self._half)

    @property
    def parameters(self) -> int:
        """For each component: a weight; a mean and a scale a channel; a coupling a pair."""
        return self.components * (1 + 2 * self.channels + _pairs(self.channels))

    def nats(self, parameters: Tensor, pixels: Tensor) -> Tensor:
        """Minus the log-probability of each image, ``(batch,)``."""
        parameters = self.checked_parameters(parameters, pixels)
        joint = self._joint(self._parts(parameters), pixels, self.channels)
        return -joint.logsumexp(1).flatten(1).sum(1)

    @torch.no_grad()
    def image(self, parameters: Tensor) -> Tensor:
        """The mean image, rounded to pixels; each component's mean is clipped first."""
        weights, means, _, couplings = self._parts(self.checked_parameters(parameters))
        chosen: list[Tensor] = []
        for channel in range(self.channels):
            chosen.append(_mean(channel, means, couplings, chosen).clamp(-1, 1))
        shares = weights.softmax(1)
        return self.as_pixels(torch.stack([(mean * shares).sum(1) for mean in chosen], 1))

    @torch.no_grad()
    def sample(self, parameters: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Images drawn from the distribution, one channel after the other."""
        weights, *parts = self._parts(self.checked_parameters(parameters))
        component = draw(weights.softmax(1), generator, 1)[:, None, None]
        means, log_scales, couplings = (
            part.gather(2, component.expand(-1, part.shape[1], -1, -1, -1)) for part in parts
        )
        chosen: list[Tensor] = []
        for channel in range(self.channels):
            mean = _mean(channel, means, couplings, chosen)
            uniform = torch.rand(
                mean.shape, dtype=mean.dtype, device=mean.device, generator=generator
            )
            drawn = mean + log_scales[:, channel].exp() * uniform.logit(NEAR_ZERO)
            # Rounding takes a draw to the bin it lies in; the next channel sees the pixel.
            chosen.append(self._scaled(self.as_pixels(drawn), mean.dtype))
        return self.as_pixels(torch.cat(chosen, 1))

    @torch.no_grad()
    def probabilities(self, parameters: Tensor, pixels: Tensor, channel: int) -> Tensor:
        """Of each value of one channel, ``(batch, height, width, 2**bits)`` in float64."""
        channel = self.checked_channel(channel)
        parts = self._parts(self.checked_parameters(parameters, pixels).double())
        # What the channels before say about the components.
        shares = self._joint(parts, pixels, channel).softmax(1)
        _, means, log_scales, couplings = parts
        before = [self._scaled(pixels[:, j : j + 1], means.dtype) for j in range(channel)]
        mean, sharpness = _mean(channel, means, couplings, before), (-log_scales[:, channel]).exp()
        edges = torch.arange(1, self.values, dtype=mean.dtype, device=mean.device)
        edges = (2 * edges - 1) * self._half - 1
        total = mean.new_zeros(*pixels[:, 0].shape, self.values)
        # A component at a time: all at once need components times the memory.
        for share, middle, sharp in zip(
            shares.unbind(1), mean.unbind(1), sharpness.unbind(1), strict=True
        ):
            total += share.unsqueeze(-1) * self._masses(edges, middle, sharp)
        return total

    def _joint(self, parts: Sequence[Tensor], pixels: Tensor, channels: int) -> Tensor:
        """Log-weights plus log-masses of the first ``channels``, ``(batch, components, h, w)``."""
        weights, means, log_scales, couplings = parts
        joint = weights.log_softmax(1)
        before: list[Tensor] = []
        for channel in range(channels):
            values = pixels[:, channel : channel + 1]
            mean = _mean(channel, means, couplings, before)
            before.append(self._scaled(values, mean.dtype))
            joint = joint + self._log_mass(before[-1] - mean, log_scales[:, channel], values)
        return joint

    def _log_mass(self, distance: Tensor, log_scale: Tensor, values: Tensor) -> Tensor:
        """The log of a bin's mass under a logistic at some distance from the bin's middle."""
        sharpness = (-log_scale).exp()
        place, reach = distance * sharpness, self._half * sharpness
        # The lowest bin has no lower end and the highest no upper one. Every term is finite
        # everywhere, so one that does not count may be multiplied away.
        upper, lower = (values < self.values - 1).to(place), (values > 0).to(place)
        return (
            upper * functional.logsigmoid(place + reach)
            + lower * functional.logsigmoid(reach - place)
            + upper * lower * (-torch.expm1(-2 * reach)).log()
        )

    def _masses(self, edges: Tensor, mean: Tensor, sharpness: Tensor) -> Tensor:
        """The masses of all bins, ``(batch, height, width, 2**bits)``."""
        place = (edges - mean.unsqueeze(-1)) * sharpness.unsqueeze(-1)
        below, above = place.sigmoid(), (-place).sigmoid()
        width = -torch.expm1(-2 * self._half * sharpness).unsqueeze(-1)
        inner = below[..., 1:] * above[..., :-1] * width
        return torch.cat([below[..., :1], inner, above[..., -1:]], dim=-1)

    def _parts(self, parameters: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Weights ``(batch, components, h, w)``; means, log-scales, couplings with an axis 1."""
        rows = parameters.unflatten(1, (-1, self.components))
        sizes = [1, self.channels, self.channels, _pairs(self.channels)]
        weights, means, log_scales, couplings = rows.split(sizes, dim=1)
        bounded: Tensor = applied(_Bounded, log_scales, self._floor, CEILING)
        return weights[:, 0], means, bounded, couplings.tanh()

    def _scaled(self, values: Tensor, dtype: torch.dtype) -> Tensor:
        return values.to(dtype) * (2 * self._half) - 1


def _pairs(channels: int) -> int:
    return channels * (channels - 1) // 2


def _mean(channel: int, means: Tensor, couplings: Tensor, before: Sequence[Tensor]) -> Tensor:
    """The means of a channel after the shifts by the channels before it."""
    mean = means[:, channel]
    for shift, value in enumerate(before, start=_pairs(channel)):
        mean = mean + couplings[:, shift] * value
    return mean


class _Bounded(torch.autograd.Function):
    """Clamps; a gradient that leads back inside passes also where a number is clamped."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, low: float, high: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.bounds = low, high
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (x,) = ctx.saved_tensors
        low, high = ctx.bounds
        gradient = gradients[0]
        # A step of descent goes against the gradient.
        stuck = ((x < low) & (gradient > 0)) | ((x > high) & (gradient < 0))
        return gradient.masked_fill(stuck, 0.0), None, None
