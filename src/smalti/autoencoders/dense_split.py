"""Several latents a position: one dense layer splits a position into vectors of one codebook.

Reference:
    Roy, Vaswani, Neelakantan, Parmar, "Theory and Experiments on Vector Quantized
    Autoencoders", 2018, arXiv:1805.11063, section 5.2 (8 x 8 x 10 latents, 2^8 codewords).

Differs from the paper:
    Two strided convolutions, not four: four would leave 2 x 2 of 32 x 32 pixels, and the
    published grid is 8 x 8. The residual layers are a quarter as wide inside, since their width
    is not told. Soft assignment is the quantizer ``soft_em``; the default is the paper's hard
    one.
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
from smalti.autoencoders.shared_codebook import SharedCodebook
from smalti.layers.convolutions import Downsample, ResidualStack, Upsample
from smalti.quantizers.base import Quantizer
from smalti.quantizers.settings import count

PAPER_CODEBOOK = {"quantizer": "vector", "codebook_size": 256, "decay": 0.999}
KERNEL = 5


@autoencoders.register("dense_split")
class DenseSplit(CodedAutoencoder):
    """``latents`` codes a position, all of one codebook.

    Args:
        channels: Of the images.
        bits: Of a subpixel.
        likelihood: A registered name, a spec, or an object.
        quantizer: Of one latent: a registered name, a spec, or an object.
        latents: How many a position has.
        dim: Width of a latent where the quantizer does not say.
        width: Channels of the network.
        hidden: Channels inside a residual block.
        depth: Residual blocks of the encoder, and of the decoder.

    Example:
        >>> import torch
        >>> model = DenseSplit(width=16, hidden=8, dim=8)
        >>> pixels = torch.randint(256, (2, 3, 32, 32), dtype=torch.uint8)
        >>> [grid.shape for grid in model.encode(pixels)]
        [torch.Size([2, 8, 8, 10])]
    """

    example: ClassVar[Mapping[str, Any]] = {
        "bits": 5,
        "quantizer": {"quantizer": "vector", "codebook_size": 16},
        **{"latents": 3, "dim": 8, "width": 16, "hidden": 8, "depth": 1},
    }

    def __init__(
        self,
        channels: int = 3,
        bits: int = 8,
        *,
        likelihood: LikelihoodSetting = "categorical",
        quantizer: QuantizerSetting = PAPER_CODEBOOK,
        latents: int = 10,
        dim: int = 512,
        width: int = 512,
        hidden: int = 128,
        depth: int = 2,
    ) -> None:
        latents, own_dim = count("latents", latents), count("dim", dim)
        width, hidden = count("width", width), count("hidden", hidden)
        shared = SharedCodebook(fitting_quantizer(quantizer, own_dim), latents)
        super().__init__(channels, bits, likelihood, [shared], stride=4)
        self.latents, self.dim, self.width, self.hidden = latents, own_dim, width, hidden
        self.depth = count("depth", depth)
        self.encoder = nn.Sequential(
            Downsample(self.channels, width, KERNEL),
            nn.ReLU(),
            Downsample(width, width, KERNEL),
            ResidualStack(width, hidden, depth),
        )
        self.split = nn.Linear(width, shared.dim)
        self.merge = nn.Linear(shared.dim, width)
        self.decoder = nn.Sequential(
            ResidualStack(width, hidden, depth),
            Upsample(width, width, KERNEL),
            nn.ReLU(),
            Upsample(width, width, KERNEL),
            nn.ReLU(),
            nn.Conv2d(width, self.likelihood.parameters, 1),
        )

    @property
    def quantizer(self) -> Quantizer:
        """The quantizer of a latent."""
        (shared,) = self.quantizers
        assert isinstance(shared, SharedCodebook)
        return shared.inner

    @property
    def stored_sizes(self) -> tuple[tuple[int, ...], ...]:
        """Those of one latent: all latents share them."""
        return (self.quantizer.code_sizes,)

    def maps(self, x: Tensor) -> list[Tensor]:
        """The encoder's one map."""
        return [self.encoder(x)]

    def approach(self, level: int, features: Tensor, above: Tensor | None) -> Tensor:
        """All latents of a position side by side."""
        del level, above
        vectors: Tensor = self.split(channels_last(features))
        return vectors

    def join(self, vectors: Sequence[Tensor | None]) -> Tensor:
        """The decoder, of one level's vectors."""
        (one,) = vectors
        assert one is not None  # checked by decode
        parameters: Tensor = self.decoder(channels_first(self.merge(one)))
        return parameters
