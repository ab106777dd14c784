"""A variational autoencoder with Gaussian latents: the baseline without codes.

Reference:
    Kingma, Welling, "Auto-Encoding Variational Bayes", ICLR 2014, arXiv:1312.6114, section 3.
    Higgins et al., "beta-VAE", ICLR 2017 (the weight of the rate).

Differs from the paper:
    A grid of latents between the convolutions of ``Convolutional``. In evaluation the latents
    are a draw from a fixed seed: repeatable, and distortion and rate still add up to an upper
    bound of minus the log-likelihood, which they do not where the mean is decoded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NoReturn

import torch
from torch import Tensor, nn
from torch.nn import functional

from smalti.autoencoders.base import Autoencoder, LikelihoodSetting, Reconstruction, autoencoders
from smalti.autoencoders.trunk import Trunk
from smalti.errors import ConfigError
from smalti.quantizers.settings import count, number

# Below this a latent is a number of many bits, and its log has no end.
NARROWEST = 1e-4
SEED = 0


@autoencoders.register("gaussian")
class GaussianAutoencoder(Autoencoder):
    """``dim`` Gaussian numbers a position in the place of codes.

    It is no quantizer inside another autoencoder, because it has nothing that a quantizer
    promises: no codes to encode to or to decode from, and a rate that is known only once an
    image is seen. ``codes`` is empty, and the rate is the divergence from a unit Gaussian.

    Args:
        channels: Of the images.
        bits: Of a subpixel.
        likelihood: A registered name, a spec, or an object.
        dim: Latents of a position.
        beta: Weight of the rate. With 1 and an exact likelihood, the likelihood's loss and
            this one add up to the bound, in nats a subpixel.
        body: See ``Convolutional``, also the following.
        width: Channels at the coarse end.
        hidden: Channels inside a block.
        depth: Blocks of the encoder, and of the decoder.
        halvings: How often height and width are halved.

    Metrics: kl_nats, the rate of an image in nats, the mean of the batch.
    """

    example: ClassVar[Mapping[str, Any]] = {"dim": 4, "width": 16, "hidden": 8, "depth": 1}

    def __init__(
        self,
        channels: int = 3,
        bits: int = 8,
        *,
        likelihood: LikelihoodSetting = "logistic_mixture",
        dim: int = 16,
        beta: float = 1.0,
        body: str = "residual",
        width: int = 128,
        hidden: int = 32,
        depth: int = 2,
        halvings: int = 2,
    ) -> None:
        halvings = count("halvings", halvings)
        super().__init__(channels, bits, likelihood, [], stride=2**halvings)
        self.dim, self.beta = count("dim", dim), number("beta", beta, least=0)
        self.trunk = Trunk(
            self.channels,
            self.likelihood.parameters,
            body=body,
            width=width,
            hidden=hidden,
            depth=depth,
            halvings=halvings,
        )
        self.body, self.width, self.hidden = self.trunk.body, self.trunk.width, self.trunk.hidden
        self.depth, self.halvings = self.trunk.depth, halvings
        self.before = nn.Conv2d(width, 2 * dim, 1)
        self.after = nn.Conv2d(dim, width, 3, padding=1)

    def forward(self, pixels: Tensor) -> Reconstruction:
        """Encode, draw latents and decode; see :class:`Autoencoder`."""
        mean, spread = self._posterior(pixels)
        generator = None
        if not self.training:
            generator = torch.Generator(mean.device).manual_seed(SEED)
        noise = torch.randn(mean.shape, device=mean.device, generator=generator)
        latents = (mean + spread * noise).to(self.weights_dtype())
        divergence = (mean.square() + spread.square() - 1) / 2 - spread.log()
        rate = divergence.sum() / max(len(pixels), 1)
        return Reconstruction(
            parameters=self.trunk.decoder(self.after(latents)),
            codes=(),
            loss=self.beta * rate / pixels.shape[1:].numel(),
            metrics={"kl_nats": rate.detach()},
        )

    def encode(self, pixels: Tensor) -> tuple[Tensor, ...]:
        """No codes."""
        self.network_input(pixels)
        return ()

    def decode(self, codes: Sequence[Tensor | None]) -> Tensor:
        """Refused."""
        self._refuse(f"codes to decode, got {codes!r:.60}")

    def bits_per_image(self, height: int, width: int) -> float:
        """Refused."""
        self._refuse(f"rate before it sees the {height} x {width} image: read metrics['kl_nats']")

    def _posterior(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Means and standard deviations of the latents, in float32."""
        mean, spread = self.before(self.trunk.encoder(self.network_input(pixels))).chunk(2, dim=1)
        return mean.float(), functional.softplus(spread.float()) + NARROWEST

    @staticmethod
    def _refuse(what: str) -> NoReturn:
        raise ConfigError(f"a Gaussian autoencoder has no {what}")
