"""What is particular to Convolutional, DenseSplit and GaussianAutoencoder."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

from smalti.autoencoders import Convolutional, DenseSplit, GaussianAutoencoder, assignments
from smalti.autoencoders.shared_codebook import SharedCodebook
from smalti.errors import ConfigError
from smalti.layers.convolutions import InceptionBlock, ResidualBlock
from smalti.quantizers import SoftEM, VectorQuantizer

SMALL: dict[str, Any] = {"width": 16, "hidden": 8, "depth": 2}


def images(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(256, shape, generator=generator).to(torch.uint8)


def count(model: nn.Module, kind: type[nn.Module]) -> int:
    return sum(isinstance(module, kind) for module in model.modules())


# Convolutional


@pytest.mark.parametrize(
    ("body", "residual", "inception"),
    [("plain", 0, 0), ("residual", 4, 0), ("inception", 0, 4)],
)
def test_a_body_is_plain_residual_or_inception(body: str, residual: int, inception: int) -> None:
    model = Convolutional(body=body, **SMALL)
    assert (count(model, ResidualBlock), count(model, InceptionBlock)) == (residual, inception)
    pixels = images(2, 3, 16, 16)
    model.likelihood.loss(model(pixels).parameters, pixels).backward()


def test_an_unknown_body_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="plain, residual, inception"):
        Convolutional(body="dense", **SMALL)


def test_the_quantizer_stands_between_a_point_and_a_3x3_convolution() -> None:
    model = Convolutional(quantizer={"quantizer": "vector", "codebook_size": 8}, dim=6, **SMALL)
    assert (model.before.kernel_size, model.before.out_channels) == ((1, 1), 6)
    assert (model.after.kernel_size, model.after.in_channels) == ((3, 3), 6)
    assert model.quantizer.dim == 6


def test_a_quantizer_that_names_its_width_keeps_it() -> None:
    layer = VectorQuantizer(5, 8)
    assert Convolutional(quantizer=layer, **SMALL).quantizer is layer
    spec = {"quantizer": "vector", "codebook_size": 8, "dim": 5}
    assert Convolutional(quantizer=spec, dim=7, **SMALL).quantizer.dim == 5


@pytest.mark.parametrize(("halvings", "side"), [(1, 16), (2, 8), (3, 4)])
def test_sides_are_halved_as_often_as_told(halvings: int, side: int) -> None:
    model = Convolutional(halvings=halvings, **SMALL)
    (codes,) = model.encode(images(2, 3, 32, 32))
    assert codes.shape == (2, side, side, 1)
    assert model.decode([codes]).shape == (2, 3, 32, 32)


def test_the_paper_sets_the_defaults() -> None:
    model = Convolutional()
    # An 8 x 8 grid of 512 codewords of width 128: 9 bits a place.
    assert model.bits_per_image(32, 32) == 8 * 8 * 9
    assert model.quantizer.dim == 128


def test_a_name_stands_for_a_quantizers_defaults() -> None:
    model = Convolutional(quantizer="finite_scalar", **SMALL)
    assert model.code_sizes == ((8, 5, 5, 5),)


def test_an_adaptive_pool_fits() -> None:
    pool = {"quantizer": "adaptive", "pool": [[8, 4], [16, 2]]}
    model = Convolutional(quantizer=pool, dim=8, **SMALL)
    out = model(images(4, 3, 16, 16))
    assert out.codes[0].shape == (4, 4, 4, 2)
    assert "rate_bits" in out.metrics


# Several latents a position


def test_latents_of_the_paper_lie_on_a_grid_of_8_x_8_x_10() -> None:
    model = DenseSplit(dim=16, **SMALL)
    (codes,) = model.encode(images(2, 3, 32, 32))
    assert codes.shape == (2, 8, 8, 10)
    # 640 codes of 8 bits for 3072 subpixels are 1.667 bits each.
    assert model.bits_per_image(32, 32) / 3072 == pytest.approx(1.667, abs=1e-3)


def test_all_latents_share_one_codebook() -> None:
    model = DenseSplit(dim=16, **SMALL)
    assert isinstance(model.quantizer, VectorQuantizer)
    assert model.quantizer.codebook.shape == (256, 16)
    assert [name for name in model.state_dict() if name.endswith("codewords")] == [
        "quantizers.0.inner.book.codewords"
    ]


def test_soft_assignments_are_a_choice_of_quantizer() -> None:
    spec = {"quantizer": "soft_em", "codebook_size": 16, "samples": 4}
    model = DenseSplit(quantizer=spec, dim=16, **SMALL)
    assert isinstance(model.quantizer, SoftEM)
    assert "posterior_entropy" in model(images(2, 3, 16, 16)).metrics


def test_soft_labels_are_the_shares_of_the_drawn_codes() -> None:
    spec = {"quantizer": "soft_em", "codebook_size": 16, "samples": 4, "temperature": 1e-6}
    model = DenseSplit(quantizer=spec, dim=16, **SMALL)
    pixels = images(2, 3, 16, 16)
    model(pixels)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    (shares,) = assignments(model, pixels)
    assert shares is not None
    assert shares.shape == (2, 4, 4, 10, 16)
    torch.testing.assert_close(shares.sum(-1), torch.ones(2, 4, 4, 10))
    assert torch.equal(shares * 4, (shares * 4).round())
    # So cold that every draw is the nearest codeword.
    (codes,) = model.encode(pixels)
    assert torch.equal(shares.argmax(-1), codes)
    assert model.quantizer.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]), name


def test_hard_codes_have_no_soft_labels() -> None:
    assert assignments(DenseSplit(dim=16, **SMALL), images(2, 3, 16, 16)) == (None,)


def test_soft_labels_of_one_codebook_have_an_axis_for_it() -> None:
    spec = {"quantizer": "soft_em", "codebook_size": 8, "samples": 5}
    (shares,) = assignments(Convolutional(quantizer=spec, **SMALL), images(2, 3, 8, 8))
    assert shares is not None
    assert shares.shape == (2, 2, 2, 1, 8)


def test_slices_are_quantized_alike() -> None:
    inner = VectorQuantizer(2, 4)
    inner.book.codewords.copy_(torch.tensor([[[0.0, 0], [1, 0], [0, 1], [1, 1]]]))
    shared = SharedCodebook(inner, 3).eval()
    x = torch.tensor([[0.1, 0.9, 0.9, 0.8, 0.1, 0.9]])
    out = shared(x)
    # By hand: the first and the last slice are the same vector.
    assert out.codes.tolist() == shared.encode(x).tolist() == [[2, 3, 2]]
    assert out.vectors.tolist() == [[0, 1, 1, 1, 0, 1]]
    assert torch.equal(shared.decode(out.codes), out.vectors)
    # By hand: errors 0.1 0.1 | 0.1 0.2 | 0.1 0.1 squared, over six numbers.
    assert float(out.metrics["distortion"]) == pytest.approx(0.09 / 6)
    assert shared.bits_per_vector == 6


def test_a_masked_position_counts_in_no_slice() -> None:
    shared = SharedCodebook(VectorQuantizer(2, 4), 3).eval()
    x = torch.randn(5, 6)
    mask = torch.tensor([True, True, False, True, False])
    torch.testing.assert_close(shared(x, mask).loss, shared(x[mask]).loss)


def test_a_shared_codebook_starts_from_slices() -> None:
    shared = SharedCodebook(VectorQuantizer(2, 4), 2)
    shared.start_from(torch.tensor([[1.0, 1, 2, 2], [3, 3, 4, 4]]))
    assert isinstance(shared.inner, VectorQuantizer)
    rows = sorted(shared.inner.codebook.tolist())
    torch.testing.assert_close(torch.tensor(rows), torch.tensor([[i, i] for i in (1.0, 2, 3, 4)]))


# Gaussian latents


def test_the_rate_is_the_divergence_from_a_unit_gaussian() -> None:
    model = GaussianAutoencoder(dim=3, beta=2.0, **SMALL)
    pixels = images(4, 3, 8, 8)
    with torch.no_grad():
        features = model.before(model.trunk.encoder(model.likelihood.scaled(pixels)))
    mean, raw = features[:, :3], features[:, 3:]
    posterior = Normal(mean, nn.functional.softplus(raw) + 1e-4)
    rate = kl_divergence(posterior, Normal(0.0, 1.0)).sum((1, 2, 3)).mean()
    for out in (model(pixels), model.eval()(pixels)):
        torch.testing.assert_close(out.metrics["kl_nats"], rate)
        # Twice the nats of an image, over its 192 subpixels.
        torch.testing.assert_close(out.loss, 2 * rate / 192)


def test_latents_are_drawn_anew_in_training_only() -> None:
    model = GaussianAutoencoder(dim=3, **SMALL)
    pixels = images(4, 3, 8, 8)
    assert not torch.equal(model(pixels).parameters, model(pixels).parameters)
    model.eval()
    assert torch.equal(model(pixels).parameters, model(pixels).parameters)
    # Equal images get draws of their own: what is decoded is not the mean.
    same = pixels[:1].expand(4, -1, -1, -1)
    first, second = model(same).parameters[:2]
    assert not torch.equal(first, second)


def test_the_network_is_that_of_the_autoencoder_with_codes() -> None:
    coded = Convolutional(likelihood="logistic_mixture", **SMALL)
    plain = GaussianAutoencoder(**SMALL)
    ours = {name: tensor.shape for name, tensor in plain.trunk.state_dict().items()}
    theirs = {name: tensor.shape for name, tensor in coded.trunk.state_dict().items()}
    assert ours == theirs
