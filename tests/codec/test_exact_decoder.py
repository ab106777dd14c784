"""The decoder's numbers do not depend on the order in which anything is added."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from smalti.autoencoders import Autoencoder, autoencoders, build_autoencoder
from smalti.codec.exact_decoder import ExactDecoder, ExactLayer
from smalti.errors import DataError

CODED = [name for name in autoencoders.names() if name != "gaussian"]
QUANTIZERS: list[dict[str, Any]] = [
    {"quantizer": "finite_scalar", "levels": [4, 5]},
    {"quantizer": "lookup_free", "bits": 5},
    {"quantizer": "residual", "num_codebooks": 3, "codebook_size": 8},
]


def with_codes(name: str, **more: Any) -> tuple[Autoencoder, list[torch.Tensor]]:
    """A small autoencoder and the codes of five images."""
    torch.manual_seed(1)
    model = build_autoencoder(name, **{**autoencoders.get(name).example, **more}).eval()
    pixels = torch.randint(2**model.bits, (5, model.channels, 16, 16)).to(torch.uint8)
    return model, list(model.encode(pixels))


@pytest.mark.parametrize("name", CODED)
def test_it_decodes_what_the_autoencoder_decodes(name: str) -> None:
    model, codes = with_codes(name)
    with torch.no_grad():
        expected = model.double().decode(codes)
    found = ExactDecoder(model).parameters(codes)
    assert found.dtype == torch.float64
    assert (found - expected).abs().max() < 1e-5 * expected.abs().max()


@pytest.mark.parametrize("quantizer", QUANTIZERS, ids=lambda spec: spec["quantizer"])
def test_an_image_has_the_same_bits_alone_and_with_two_threads(quantizer: dict[str, Any]) -> None:
    model, codes = with_codes("convolutional", quantizer=quantizer)
    decoder = ExactDecoder(model)
    torch.set_num_threads(1)
    together = decoder.parameters(codes)
    torch.set_num_threads(2)
    alone = [decoder.parameters([grid[n : n + 1] for grid in codes]) for n in range(5)]
    assert torch.equal(torch.cat(alone), together)


@pytest.mark.parametrize(
    "kind", [lambda: nn.Conv2d(64, 3, 3, padding=1), lambda: nn.ConvTranspose2d(64, 3, 4, stride=2)]
)
def test_the_order_of_adding_does_not_matter(kind: Any) -> None:
    torch.manual_seed(2)
    layer, other = kind().double(), kind().double()
    x, order = torch.randn(2, 64, 9, 9, dtype=torch.float64) * 300, torch.randperm(64)
    axis = 0 if isinstance(layer, nn.ConvTranspose2d) else 1
    with torch.no_grad():
        other.weight.copy_(layer.weight.index_select(axis, order))
        other.bias.copy_(layer.bias)
        expected = layer(x)
    one, two = ExactLayer(layer)(x), ExactLayer(other)(x[:, order])
    assert torch.equal(one, two)
    assert (one - expected).abs().max() < 1e-5 * expected.abs().max()


def test_whole_numbers_are_computed_without_any_error() -> None:
    layer = nn.Linear(4, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, 2.0, 3.0, 4.0], [0.5, 0.25, -8.0, 0.0]]))
        layer.bias.copy_(torch.tensor([0.125, 10.0]))
    # By hand, one row of the batch a thousand times larger.
    x = torch.tensor([[1.0, -1.0, 2.0, 0.5], [1000.0, 0.0, 0.0, 4000.0], [0.0, 0.0, 0.0, 0.0]])
    found = ExactLayer(layer)(x)
    assert found.tolist() == [[7.125, -5.75], [17000.125, 510.0], [0.125, 10.0]]


def test_the_autoencoder_stays_as_it_is() -> None:
    model, codes = with_codes("hierarchical")
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    ExactDecoder(model.train()).parameters(codes)
    assert model.training
    after = model.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())


def test_weights_that_are_not_finite_are_refused() -> None:
    model, _ = with_codes("convolutional")
    with torch.no_grad():
        next(model.parameters())[0] = torch.nan
    with pytest.raises(DataError, match="not finite"):
        ExactDecoder(model)
