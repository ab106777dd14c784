"""The gap between gradients through codes and without them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from smalti.autoencoders import (
    Autoencoder,
    CodedAutoencoder,
    Convolutional,
    DenseSplit,
    GaussianAutoencoder,
    Hierarchical,
    gradient_gap,
)
from smalti.errors import ConfigError
from smalti.quantizers import Adaptive, Quantizer, VectorQuantizer

SMALL: dict[str, Any] = {"width": 16, "hidden": 8, "depth": 1, "dim": 8}


def images(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(256, shape, generator=generator).to(torch.uint8)


class Halved(CodedAutoencoder):
    """Every pixel is halved, quantized and given out as it is."""

    def __init__(self, quantizer: Quantizer) -> None:
        super().__init__(1, 8, "square_error", [quantizer], stride=1)
        self.scale = nn.Parameter(torch.tensor(0.5))

    def maps(self, x: Tensor) -> list[Tensor]:
        """Half of the input."""
        return [self.scale * x]

    def approach(self, level: int, features: Tensor, above: Tensor | None) -> Tensor:
        """The map as it is."""
        del level, above
        return features.permute(0, 2, 3, 1)

    def join(self, vectors: Sequence[Tensor | None]) -> Tensor:
        """The vectors as they are."""
        (one,) = vectors
        assert one is not None
        return one.permute(0, 3, 1, 2)


def test_the_gap_is_the_one_of_hand_calculation() -> None:
    layer = VectorQuantizer(1, 3)
    layer.book.codewords.copy_(torch.tensor([[[-0.4], [0.0], [0.3]]]))
    pixels = images(5, 1, 4, 4)
    found = gradient_gap(Halved(layer), pixels)
    # The loss of an image is the mean of (v - x)^2, so its gradient is 2 (v - x) / 16: with v
    # the rounded half, and with v the half itself.
    x = pixels.double().numpy().reshape(5, 16) * 2 / 255 - 1
    half = x / 2
    words = np.array([-0.4, 0.0, 0.3])
    rounded = words[np.abs(half[:, :, None] - words).argmin(-1)]
    gaps = np.linalg.norm(2 * (rounded - half) / 16, axis=1)
    lengths = np.linalg.norm(2 * (half - x) / 16, axis=1)
    assert found.size == pytest.approx(gaps.mean(), rel=1e-5)
    assert found.relative == pytest.approx((gaps / lengths).mean(), rel=1e-5)


@pytest.mark.parametrize("kind", [Convolutional, DenseSplit, Hierarchical])
def test_without_quantization_there_is_no_gap(kind: type[Autoencoder]) -> None:
    several = kind is Hierarchical
    spec = {"quantizer": "identity"}
    setting: dict[str, Any] = {"quantizers": [spec] * 3} if several else {"quantizer": spec}
    model = kind(**SMALL, **setting)
    assert gradient_gap(model, images(2, 3, 32, 32)) == (0.0, 0.0)


FINE = {"codebook_size": 16}


@pytest.mark.parametrize(
    "spec",
    [
        {"quantizer": "vector", **FINE, "gradient": "rotation"},
        {"quantizer": "soft_em", **FINE},
        {"quantizer": "depthwise", "num_codebooks": 2, **FINE},
        {"quantizer": "repeated", "num_codebooks": 2, **FINE},
        {"quantizer": "residual", "num_codebooks": 2, **FINE},
        {"quantizer": "adaptive", "pool": [[8, 4], [16, 2]]},
    ],
    ids=lambda spec: spec["quantizer"],
)
def test_quantization_leaves_a_gap_and_the_model_as_it_was(spec: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model = Convolutional(quantizer=spec, **SMALL)
    pixels = images(4, 3, 16, 16)
    model(pixels)
    model.train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    found = gradient_gap(model, pixels)
    assert found.size > 0
    assert found.relative > 0
    assert found == gradient_gap(model, pixels)
    assert all(module.training for module in model.modules())
    assert all(weight.grad is None for weight in model.parameters())
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    assert model.spec()["quantizer"]["quantizer"] == spec["quantizer"]


def test_a_frozen_quantizer_stays_frozen() -> None:
    model = Convolutional(**SMALL)
    model.quantizer.freeze()
    model.train()
    gradient_gap(model, images(2, 3, 16, 16))
    assert model.training
    assert not model.quantizer.training


def test_the_way_without_rounding_keeps_a_pools_projections() -> None:
    pool = {"quantizer": "adaptive", "pool": [[8, 4], [16, 2]]}
    model = Convolutional(quantizer=pool, **SMALL).eval()
    pixels = images(2, 3, 8, 8)
    quantizer = model.quantizer
    assert isinstance(quantizer, Adaptive)
    flat = model.vectors(pixels)[0].reshape(-1, 8)
    for book, project in zip(quantizer.books, quantizer.project_in, strict=True):
        assert isinstance(book, VectorQuantizer)
        # Every vector has a codeword of its own: nothing is lost by rounding.
        book.book.codewords[0, : len(flat)] = project(flat).detach()
    assert gradient_gap(model, pixels).relative < 1e-4


def test_images_count_alike_whatever_their_number() -> None:
    torch.manual_seed(0)
    model = Hierarchical(
        quantizers=[{"quantizer": "vector", "codebook_size": 8}] * 2, stages=1, **SMALL
    )
    pixels = images(6, 3, 8, 8)
    model(pixels)
    whole = gradient_gap(model, pixels)
    each = [gradient_gap(model, pixels[i : i + 1]) for i in range(6)]
    assert whole.size == pytest.approx(sum(one.size for one in each) / 6, rel=1e-3)
    assert whole.relative == pytest.approx(sum(one.relative for one in each) / 6, rel=1e-3)


@pytest.mark.parametrize("spec", [{"quantizer": "lookup_free", "bits": 4}, {"quantizer": "gumbel"}])
def test_what_does_not_round_to_codewords_is_refused(spec: dict[str, Any]) -> None:
    settings = {**spec, **({} if "bits" in spec else FINE)}
    with pytest.raises(ConfigError, match="no gap"):
        gradient_gap(Convolutional(quantizer=settings, **SMALL), images(2, 3, 8, 8))


def test_without_codes_there_is_nothing_to_compare() -> None:
    with pytest.raises(ConfigError, match="no codes"):
        gradient_gap(GaussianAutoencoder(**SMALL), images(2, 3, 8, 8))
