"""One grid of codes between a convolutional encoder and decoder.

Reference:
    van den Oord, Vinyals, Kavukcuoglu, "Neural Discrete Representation Learning", NeurIPS
    2017, arXiv:1711.00937, section 4.1. Chen, Reddy, Chen, Liu, "Balance of Number of
    Embedding and their Dimensions in Vector Quantization", NeurIPS 2024, arXiv:2407.04939,
    sections 3 and 4.

Differs from the paper:
    Images lie in [-1, 1], not [-0.5, 0.5], so a squared error is four times the published one.
    With the ``adaptive`` pool the convolutions below stand around the whole pool, which has
    linear maps of its own for each codebook; the paper gives each codebook its convolutions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor, nn

from smalti.autoencoders.base import LikelihoodSetting, autoencoders
from smalti.autoencoders.coded import (
    CodedAutoencoder,
    QuantizerSetting,
    channels_first,
    channels_last,
    fitting_quantizer,
)
from smalti.autoencoders.trunk import Trunk
from smalti.quantizers.base import Quantizer
from smalti.quantizers.settings import count

PAPER_CODEBOOK = {"quantizer": "vector", "codebook_size": 512}


@autoencoders.register("convolutional")
class Convolutional(CodedAutoencoder):
    """Strided convolutions, a 1x1 one to the quantizer's width, codes, a 3x3 one, and back.

    Args:
        channels: Of the images.
        bits: Of a subpixel.
        likelihood: A registered name, a spec, or an object.
        quantizer: A registered name, a spec, or an object; any but ``channels_first``.
        dim: Width of the quantized vectors where the quantizer does not say.
        body: ``"plain"``, ``"residual"`` or ``"inception"`` blocks at the coarse end.
        width: Channels at the coarse end.
        hidden: Channels inside a block.
        depth: Blocks of the encoder, and of the decoder.
        halvings: How often height and width are halved.

    Example:
        >>> import torch
        >>> model = Convolutional(channels=1, width=16, hidden=8)
        >>> pixels = torch.randint(256, (2, 1, 28, 28), dtype=torch.uint8)
        >>> [grid.shape for grid in model.encode(pixels)]
        [torch.Size([2, 7, 7, 1])]
    """

    example: ClassVar[Mapping[str, Any]] = {
        "quantizer": {"quantizer": "vector", "codebook_size": 16},
        **{"dim": 8, "width": 16, "hidden": 8, "depth": 1},
    }

    def __init__(
        self,
        channels: int = 3,
        bits: int = 8,
        *,
        likelihood: LikelihoodSetting = "square_error",
        quantizer: QuantizerSetting = PAPER_CODEBOOK,
        dim: int = 128,
        body: str = "residual",
        width: int = 128,
        hidden: int = 32,
        depth: int = 2,
        halvings: int = 2,
    ) -> None:
        own_dim, halvings = count("dim", dim), count("halvings", halvings)
        made = fitting_quantizer(quantizer, own_dim)
        super().__init__(channels, bits, likelihood, [made], stride=2**halvings)
        self.dim = own_dim
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
        self.before = nn.Conv2d(width, made.dim, 1)
        self.after = nn.Conv2d(made.dim, width, 3, padding=1)

    @property
    def quantizer(self) -> Quantizer:
        """The quantizer of the one level."""
        return self.levels()[0]

    def maps(self, x: Tensor) -> list[Tensor]:
        """The encoder's one map."""
        return [self.trunk.encoder(x)]

    def approach(self, level: int, features: Tensor, above: Tensor | None) -> Tensor:
        """The map in the quantizer's width."""
        del level, above
        return channels_last(self.before(features))

    def join(self, vectors: Sequence[Tensor | None]) -> Tensor:
        """The decoder, of one level's vectors."""
        (one,) = vectors
        assert one is not None  # checked by decode
        parameters: Tensor = self.trunk.decoder(self.after(channels_first(one)))
        return parameters
