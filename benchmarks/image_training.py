"""How much faster does the shipped CIFAR-10 model train than with another library's layer?

The network of ``configs/vq-cifar10.yaml``, its batch size and its optimizer, once with our
quantizer and once with vector-quantize-pytorch's between the same encoder and decoder: moving
averages with the same decay, the same weight of the commitment, straight-through gradients. A
step is forward, backward and the optimizer.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, optim
from vector_quantize_pytorch import VectorQuantize

from benchmarks.timing import Ratio, interleaved
from smalti.autoencoders import build_autoencoder
from smalti.autoencoders.convolutional import Convolutional
from smalti.quantizers import VectorQuantizer, follow
from smalti.recipes.images import AutoencoderConfig
from smalti.training import read_settings

CONFIG = Path(__file__).parent.parent / "configs" / "vq-cifar10.yaml"
# Codewords, pairs of runs, the ratio wanted; the config's own size is there for comparison.
CASES = [(512, 5, 1.0), (4096, 5, 1.3), (8192, 3, 1.3), (16_384, 3, 1.3)]
PEER = "vector-quantize-pytorch 1.32.0"


class OurStep:
    """A step of the model as it is trained."""

    def __init__(self, model: Convolutional, pixels: Tensor, rate: float) -> None:
        self.model, self.pixels = model, pixels
        self.optimizer = optim.Adam(model.parameters(), lr=rate)
        follow(model, self.optimizer)

    def __call__(self) -> None:
        """Forward, backward, optimizer."""
        out = self.model(self.pixels)
        loss = self.model.likelihood.loss(out.parameters, self.pixels) + out.loss
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


class PeerStep:
    """A step of the same network around the peer's layer."""

    def __init__(self, model: Convolutional, pixels: Tensor, rate: float) -> None:
        ours = model.quantizer
        assert isinstance(ours, VectorQuantizer)
        self.model, self.pixels = model, pixels
        self.layer = VectorQuantize(
            dim=ours.dim,
            codebook_size=ours.code_sizes[0],
            decay=ours.decay,
            commitment_weight=ours.beta,
            rotation_trick=False,
        )
        self.optimizer = optim.Adam(model.parameters(), lr=rate)

    def __call__(self) -> None:
        """Forward, backward, optimizer."""
        model = self.model
        (features,) = model.maps(model.network_input(self.pixels))
        x = model.approach(0, features, None)
        vectors, _, commitment = self.layer(x.flatten(1, 2))
        parameters = model.join([vectors.view(x.shape)])
        loss = model.likelihood.loss(parameters, self.pixels) + commitment.sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def run() -> Iterator[Ratio]:
    config = read_settings(AutoencoderConfig, CONFIG)
    batch, rate = config.training.batch_size, config.training.learning_rate
    pixels = torch.randint(256, (batch, 3, 32, 32), dtype=torch.uint8)
    for size, pairs, wanted in CASES:
        torch.manual_seed(0)
        quantizer = {**config.model["quantizer"], "codebook_size": size}
        model = build_autoencoder({**config.model, "quantizer": quantizer})
        assert isinstance(model, Convolutional)
        ours, peer = OurStep(model, pixels, rate), PeerStep(copy.deepcopy(model), pixels, rate)
        medians = interleaved(ours, peer, pairs)
        question = f"training step of {CONFIG.stem}, {batch} images, {size} codewords"
        yield Ratio(question, "with fast", *medians, PEER, "ms", wanted)
