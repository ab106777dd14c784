"""A small convolutional encoder and decoder, with a choice of what stands at the coarse end.

Reference:
    van den Oord, Vinyals, Kavukcuoglu, "Neural Discrete Representation Learning", NeurIPS
    2017, arXiv:1711.00937, section 4.1. Chen, Reddy, Chen, Liu, "Balance of Number of
    Embedding and their Dimensions in Vector Quantization", NeurIPS 2024, arXiv:2407.04939,
    section 4 and table 3 (CNN, CNN+ResNet, CNN+Inception).

Differs from the paper:
    Any number of halvings. The first ReLU of a residual block leaves the skip as it is; the
    code that both papers build on changes it in place. The inception layers are not described;
    here they are GoogLeNet blocks with equal branches.
"""

from __future__ import annotations

from itertools import pairwise

from torch import nn

from smalti.layers.convolutions import Downsample, InceptionBlock, ResidualStack, Upsample
from smalti.quantizers.settings import count, word

BODIES = ("plain", "residual", "inception")


class Trunk(nn.Module):
    """An ``encoder`` and a ``decoder``; what lies between them is another's business.

    Args:
        channels: Of the images.
        outputs: Channels that the decoder ends with.
        body: What follows the strided convolutions: nothing, residual or inception blocks.
        width: Channels at the coarse end; half as many at finer scales.
        hidden: Channels inside a block.
        depth: Blocks of the encoder, and of the decoder.
        halvings: How often height and width are halved.
    """

    def __init__(
        self,
        channels: int,
        outputs: int,
        *,
        body: str,
        width: int,
        hidden: int,
        depth: int,
        halvings: int,
    ) -> None:
        super().__init__()
        self.body = word("body", body, BODIES)
        self.width, self.hidden = count("width", width, least=2), count("hidden", hidden)
        self.depth, self.halvings = count("depth", depth), count("halvings", halvings)
        fine = [width // 2] * (halvings - 1)
        self.encoder = nn.Sequential(
            *_chain(Downsample, [channels, *fine, width]),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            _body(body, width, hidden, depth),
        )
        self.decoder = nn.Sequential(
            _body(body, width, hidden, depth), *_chain(Upsample, [width, *fine, outputs])
        )


def _chain(kind: type[Downsample] | type[Upsample], widths: list[int]) -> list[nn.Module]:
    """Layers from width to width, with a ReLU between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [kind(inputs, outputs), nn.ReLU()]
    return layers[:-1]


def _body(body: str, width: int, hidden: int, depth: int) -> nn.Module:
    if body == "residual":
        return ResidualStack(width, hidden, depth)
    if body == "inception":
        return nn.Sequential(nn.ReLU(), *(InceptionBlock(width, hidden) for _ in range(depth)))
    return nn.ReLU()
