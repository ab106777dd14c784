"""Categorical likelihood: every value of a subpixel has a score of its own.

Reference:
    van den Oord, Kalchbrenner, Kavukcuoglu, "Pixel Recurrent Neural Networks", ICML 2016,
    arXiv:1601.06759, section 2.3 (256-way softmax). Roy, Vaswani, Neelakantan, Parmar,
    "Theory and Experiments on Vector Quantized Autoencoders", 2018, arXiv:1805.11063,
    section 5.2.

Differs from the paper:
    Channels are independent given the parameters. Any bit depth. Targets are the integers of
    the image itself, never floats that were scaled and cut back.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from smalti.autoencoders.likelihoods.base import Likelihood, draw, likelihoods
from smalti.layers.applying import applied

# Scores are by far the largest tensor of a model: what is formed of them beside their
# gradient is formed for so many at a time.
BLOCK = 2**20


@likelihoods.register("categorical")
class Categorical(Likelihood):
    """``2**bits`` scores a subpixel; parameters are ``(values, channels)`` at each position.

    Args:
        channels: Of the images.
        bits: Of a subpixel.
    """

    @property
    def parameters(self) -> int:
        """A number for each value of each channel."""
        return self.values * self.channels

    def nats(self, parameters: Tensor, pixels: Tensor) -> Tensor:
        """Minus the log-probability of each image, ``(batch,)``."""
        scores = self._scores(self.checked_parameters(parameters, pixels))
        nats: Tensor = applied(_Nats, scores, pixels.long())
        return nats.flatten(1).sum(1)

    @torch.no_grad()
    def image(self, parameters: Tensor) -> Tensor:
        """The mean image, rounded to pixels."""
        shares = self._scores(self.checked_parameters(parameters)).softmax(1)
        values = torch.arange(self.values, dtype=shares.dtype, device=shares.device)
        # Not a matrix product, which autocast would round.
        means = shares.mul_(values[:, None, None, None]).sum(1)
        return self.as_whole(means.round())

    @torch.no_grad()
    def sample(self, parameters: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Images drawn from the distribution."""
        shares = self._scores(self.checked_parameters(parameters)).softmax(1)
        return self.as_whole(draw(shares, generator, 1))

    @torch.no_grad()
    def probabilities(self, parameters: Tensor, pixels: Tensor, channel: int) -> Tensor:
        """Of each value of one channel, ``(batch, height, width, 2**bits)`` in float64."""
        scores = self._scores(self.checked_parameters(parameters, pixels))
        chosen = scores[:, :, self.checked_channel(channel)].movedim(1, -1)
        return chosen.double().softmax(-1)

    def _scores(self, parameters: Tensor) -> Tensor:
        """``(batch, values, channels, height, width)``."""
        scores: Tensor = parameters.unflatten(1, (self.values, self.channels))
        return scores


class _Nats(torch.autograd.Function):
    """Cross-entropy that keeps nothing of the size of the scores for its way back."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, values: Tensor) -> Tensor:
        images = max(1, BLOCK // max(scores[0].numel(), 1)) if len(scores) else 1
        norms = torch.cat([block.logsumexp(1) for block in scores.split(images)])
        ctx.save_for_backward(scores, values, norms)
        return norms - scores.gather(1, values.unsqueeze(1)).squeeze(1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        scores, values, norms = ctx.saved_tensors
        gradient = gradients[0].unsqueeze(1)
        out = (scores - norms.unsqueeze(1)).exp_().mul_(gradient)
        out.scatter_add_(1, values.unsqueeze(1), -gradient)
        return out, None
