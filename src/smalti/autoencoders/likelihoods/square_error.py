"""Squared error: a decoder gives the mean image, and how far off it is counts."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from smalti.autoencoders.likelihoods.base import Likelihood, likelihoods
from smalti.errors import ConfigError


@likelihoods.register("square_error")
class SquareError(Likelihood):
    """One number a subpixel, in [-1, 1] as the input; the loss is the mean squared error.

    A squared error names no probabilities, so ``nats`` and ``probabilities`` are refused.

    Args:
        channels: Of the images.
        bits: Of a subpixel.
    """

    exact: ClassVar[bool] = False

    @property
    def parameters(self) -> int:
        """A number for each channel."""
        return self.channels

    def loss(self, parameters: Tensor, pixels: Tensor) -> Tensor:
        """The mean squared error of a subpixel, where black is -1 and white is 1."""
        parameters = self.checked_parameters(parameters, pixels)
        return functional.mse_loss(parameters, self.scaled(pixels).to(parameters.dtype))

    def nats(self, parameters: Tensor, pixels: Tensor) -> Tensor:
        """Refused."""
        del parameters, pixels
        raise ConfigError(self._refusal())

    def probabilities(self, parameters: Tensor, pixels: Tensor, channel: int) -> Tensor:
        """Refused."""
        del parameters, pixels, channel
        raise ConfigError(self._refusal())

    @torch.no_grad()
    def image(self, parameters: Tensor) -> Tensor:
        """The mean image, rounded to pixels."""
        return self.as_pixels(self.checked_parameters(parameters))

    @torch.no_grad()
    def sample(self, parameters: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The mean image again: there is no distribution to draw from."""
        del generator
        return self.image(parameters)

    @staticmethod
    def _refusal() -> str:
        able = ", ".join(name for name, kind in likelihoods if kind.exact)
        return f"square_error has no probabilities; those that have them are: {able}"
