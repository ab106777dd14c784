"""Grids of codes at several scales: coarse ones steer finer ones, all are decoded together.

Reference:
    Fostiropoulos, Boehm, "Implicit Feature Decoupling with Depthwise Quantization", CVPR
    2022, arXiv:2203.08080, section 4.3 and algorithm 1. Razavi, van den Oord, Vinyals,
    "Generating Diverse High-Fidelity Images with VQ-VAE-2", NeurIPS 2019, arXiv:1906.00446
    (a plain ``vector`` quantizer at each level).

Differs from the paper:
    What algorithm 1 leaves open: a level quantizes the concatenation of its map and of what
    came from above; the top level is decoded too; what comes from above is upsampled before it
    is added to the next decoding (the released code leaves this skip out,
    ``residual_decode=False``); the bottom needs no decoder of its own. A level that is left
    out in decoding is a map of zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from smalti.autoencoders.base import LikelihoodSetting, autoencoders
from smalti.autoencoders.coded import (
    CodedAutoencoder,
    QuantizerSetting,
    channels_first,
    channels_last,
    fitting_quantizer,
)
from smalti.errors import require
from smalti.layers.convolutions import Downsample, ResidualStack, Upsample
from smalti.quantizers.settings import count, flag

PAPER_LEVELS = tuple(
    {"quantizer": "depthwise", "num_codebooks": 5, "codebook_size": size} for size in (256, 128)
)
# How often an upsampler of a level doubles by learned weights; what is missing is repeated.
LEARNED_DOUBLINGS = 2


@autoencoders.register("hierarchical")
class Hierarchical(CodedAutoencoder):
    """As many levels as quantizers; each is twice as coarse as the one below it.

    Args:
        channels: Of the images.
        bits: Of a subpixel.
        likelihood: A registered name, a spec, or an object.
        quantizers: One a level, top first: registered names, specs, or objects.
        dim: Width of a level's quantized vectors where its quantizer does not say.
        width: Channels of the network.
        hidden: Channels inside a residual block.
        depth: Residual blocks of each stage.
        stages: How often height and width are halved before the bottom level.
        residual_decode: Whether what comes from above is added to a level's decoding before
            that goes on down; it matters from three levels on.

    Example:
        >>> import torch
        >>> model = Hierarchical(dim=40, width=16, hidden=8, depth=1)
        >>> pixels = torch.randint(256, (2, 3, 32, 32), dtype=torch.uint8)
        >>> [grid.shape for grid in model.encode(pixels)]
        [torch.Size([2, 4, 4, 5]), torch.Size([2, 8, 8, 5])]
        >>> model.bits_per_image(32, 32)
        2880.0
    """

    example: ClassVar[Mapping[str, Any]] = {
        "likelihood": {"likelihood": "logistic_mixture", "components": 3},
        "quantizers": [
            {"quantizer": "depthwise", "num_codebooks": 2, "codebook_size": size}
            for size in (4, 8, 16)
        ],
        **{"dim": 8, "width": 16, "hidden": 8, "depth": 1, "stages": 1},
    }

    def __init__(
        self,
        channels: int = 3,
        bits: int = 8,
        *,
        likelihood: LikelihoodSetting = "logistic_mixture",
        quantizers: Sequence[QuantizerSetting] = PAPER_LEVELS,
        dim: int = 320,
        width: int = 256,
        hidden: int = 256,
        depth: int = 4,
        stages: int = 2,
        residual_decode: bool = True,
    ) -> None:
        own_dim, stages = count("dim", dim), count("stages", stages)
        require(
            isinstance(quantizers, (Sequence, nn.ModuleList))
            and not isinstance(quantizers, str)
            and len(quantizers) >= 1,
            f"expected a list with a quantizer for each level, top first, got {quantizers!r}",
        )
        made = [fitting_quantizer(setting, own_dim) for setting in quantizers]
        require(
            len({id(quantizer) for quantizer in made}) == len(made),
            "expected a quantizer of its own for each level, got one at several levels",
        )
        above_bottom = len(made) - 1
        super().__init__(channels, bits, likelihood, made, stride=2 ** (stages + above_bottom))
        self.dim, self.width, self.hidden = own_dim, count("width", width), count("hidden", hidden)
        self.depth, self.stages = count("depth", depth), stages
        self.residual_decode = flag("residual_decode", residual_decode)

        first = [self._encoder_stage(self.channels if n == 0 else width) for n in range(stages)]
        # From the bottom up, the order in which they run.
        self.encoders = nn.ModuleList([nn.Sequential(*first)])
        self.encoders.extend(self._encoder_stage(width) for _ in range(above_bottom))
        self.projections = nn.ModuleList(
            nn.Conv2d(width if level == 0 else 2 * width, quantizer.dim, 1)
            for level, quantizer in enumerate(made)
        )
        self.decoders = nn.ModuleList(
            self._decoder_stage(quantizer.dim, doublings=1) for quantizer in made[:-1]
        )
        self.upsamplers = nn.ModuleList(
            _upsampler(quantizer.dim, width, doublings=above_bottom - level + 1)
            for level, quantizer in enumerate(made)
        )
        self.decoder = nn.Sequential(
            self._decoder_stage(width * len(made), doublings=stages - 1),
            nn.ReLU(),
            nn.Conv2d(width, self.likelihood.parameters, 1),
        )

    def maps(self, x: Tensor) -> list[Tensor]:
        """The encoder: every stage halves once more, the last gives the top's map."""
        found: list[Tensor] = []
        for encoder in self.encoders:
            x = encoder(x)
            found.append(x)
        return found[::-1]

    def approach(self, level: int, features: Tensor, above: Tensor | None) -> Tensor:
        """The level's map and what came from above, in the quantizer's width."""
        if above is not None:
            features = torch.cat([above, features], dim=1)
        return channels_last(self.projections[level](features))

    def carry(self, level: int, vectors: Tensor, above: Tensor | None) -> Tensor:
        """The level's decoding in the size of the level below."""
        decoded: Tensor = self.decoders[level](channels_first(vectors))
        if above is not None and self.residual_decode:
            decoded = decoded + functional.interpolate(above, scale_factor=2)
        return decoded

    def join(self, vectors: Sequence[Tensor | None]) -> Tensor:
        """The decoder, of all levels' vectors in twice the size of the bottom's grid."""
        upsampled = [
            None if one is None else upsampler(channels_first(one))
            for upsampler, one in zip(self.upsamplers, vectors, strict=True)
        ]
        like = next(one for one in upsampled if one is not None)
        filled = [torch.zeros_like(like) if one is None else one for one in upsampled]
        parameters: Tensor = self.decoder(torch.cat(filled, dim=1))
        return parameters

    def _encoder_stage(self, channels: int) -> nn.Sequential:
        return nn.Sequential(
            Downsample(channels, self.width),
            nn.ReLU(),
            nn.Conv2d(self.width, self.width, 3, padding=1),
            ResidualStack(self.width, self.hidden, self.depth),
        )

    def _decoder_stage(self, channels: int, doublings: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(channels, self.width, 3, padding=1),
            ResidualStack(self.width, self.hidden, self.depth),
            *_doubling(self.width, self.width, doublings),
        )


def _upsampler(dim: int, width: int, doublings: int) -> nn.Sequential:
    """Quantized vectors to maps; the coarsest are repeated first, then doubled by weights."""
    learned = min(doublings, LEARNED_DOUBLINGS)
    repeated = nn.Upsample(scale_factor=2 ** (doublings - learned))
    return nn.Sequential(repeated, *_doubling(dim, width, learned))


def _doubling(channels: int, width: int, doublings: int) -> list[nn.Module]:
    """Transposed convolutions with a ReLU between them."""
    layers: list[nn.Module] = []
    for number in range(doublings):
        layers += [nn.ReLU()] if number else []
        layers += [Upsample(width if number else channels, width)]
    return layers
