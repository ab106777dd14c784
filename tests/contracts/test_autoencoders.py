"""The laws that every registered autoencoder keeps; particulars are in tests/autoencoders."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import smalti.autoencoders
from smalti.autoencoders import (
    Autoencoder,
    CodedAutoencoder,
    Reconstruction,
    autoencoders,
    build_autoencoder,
)
from smalti.autoencoders.likelihoods import likelihoods
from smalti.errors import ConfigError, DataError, ShapeError, SmaltiError
from smalti.quantizers import Quantizer, quantizers

NAMES = autoencoders.names()
CODED = [name for name in NAMES if issubclass(autoencoders.get(name), CodedAutoencoder)]
CODELESS = [name for name in NAMES if name not in CODED]


def make(name: str, seed: int = 0, **changed: Any) -> Autoencoder:
    torch.manual_seed(seed)
    return build_autoencoder(name, **{**autoencoders.get(name).example, **changed})


def images(model: Autoencoder, batch: int = 4, height: int = 8, width: int = 8) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    shape = (batch, model.channels, height, width)
    return torch.randint(2**model.bits, shape, generator=generator).to(torch.uint8)


def loss_of(model: Autoencoder, pixels: Tensor) -> Tensor:
    out = model(pixels)
    return model.likelihood.loss(out.parameters, pixels) + out.loss


def trained(name: str, steps: int = 3, **changed: Any) -> Autoencoder:
    model = make(name, **changed)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    torch.manual_seed(1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model, images(model)).backward()
        optimizer.step()
    return model


def state(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def assert_same_state(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


def test_the_registry_holds_the_whole_family() -> None:
    assert {"convolutional", "dense_split", "hierarchical", "gaussian"} <= set(NAMES)
    assert CODELESS == ["gaussian"]


@pytest.mark.parametrize("name", NAMES)
def test_a_class_can_be_imported_from_the_package(name: str) -> None:
    kind = autoencoders.get(name)
    assert getattr(smalti.autoencoders, kind.__name__) is kind


@pytest.mark.parametrize("size", [(8, 8), (16, 24)])
@pytest.mark.parametrize("name", NAMES)
def test_the_result_has_the_shapes_and_types_of_the_contract(
    name: str, size: tuple[int, int]
) -> None:
    model = make(name)
    pixels = images(model, 3, *size)
    grids = model.grids(*size)
    for out in (model(pixels), model.eval()(pixels)):
        assert isinstance(out, Reconstruction)
        assert out.parameters.shape == (3, model.likelihood.parameters, *size)
        assert out.parameters.dtype == torch.float32
        assert out.loss.shape == ()
        assert all(value.shape == () for value in out.metrics.values())
        assert not any(value.requires_grad for value in out.metrics.values())
        assert len(out.codes) == len(grids) == len(model.quantizers)
        for codes, grid, sizes in zip(out.codes, grids, model.code_sizes, strict=True):
            assert codes.shape == (3, *grid, len(sizes))
            assert codes.dtype == torch.int64
            assert bool((codes >= 0).all())
            assert bool((codes < torch.tensor(sizes)).all())
    assert all(codes.shape[1:3] == grid for codes, grid in zip(out.codes, grids, strict=True))
    heights = [height for height, _ in grids]
    assert heights == sorted(heights)


@pytest.mark.parametrize("name", CODED)
def test_decoding_the_codes_gives_what_the_forward_pass_gave(name: str) -> None:
    model = trained(name).eval()
    pixels = images(model)
    out = model(pixels)
    codes = model.encode(pixels)
    assert all(torch.equal(one, other) for one, other in zip(codes, out.codes, strict=True))
    assert torch.equal(model.decode(codes), out.parameters)


@pytest.mark.parametrize("name", NAMES)
def test_evaluation_is_deterministic_and_changes_nothing(name: str) -> None:
    model = trained(name).eval()
    before = state(model)
    pixels = images(model)
    one = model(pixels)
    torch.rand(7)
    other = model(pixels)
    assert torch.equal(one.parameters, other.parameters)
    assert torch.equal(one.loss, other.loss)
    assert_same_state(before, state(model))


@pytest.mark.parametrize("name", CODED)
def test_encoding_and_decoding_learn_nothing_in_training(name: str) -> None:
    model = trained(name).train()
    before = state(model)
    codes = model.encode(images(model))
    model.decode(codes)
    assert isinstance(model, CodedAutoencoder)
    vectors = model.vectors(images(model))
    assert_same_state(before, state(model))
    for one, codes_of_level, quantizer in zip(vectors, codes, model.levels(), strict=True):
        assert not one.requires_grad
        assert torch.equal(quantizer.encode(one), codes_of_level)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_training(name: str) -> None:
    assert_same_state(state(trained(name)), state(trained(name)))


@pytest.mark.parametrize("name", NAMES)
def test_everything_that_learns_gets_a_gradient(name: str) -> None:
    model = trained(name)
    model.zero_grad()
    loss_of(model, images(model)).backward()
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name
        assert bool(parameter.grad.any()), parameter_name


@pytest.mark.parametrize("name", NAMES)
def test_training_lowers_the_loss(name: str) -> None:
    model = make(name)
    # Flat images in a few shades: something that can be learned in a few steps.
    shades = torch.tensor([0.1, 0.4, 0.9]) * (2**model.bits - 1)
    pixels = shades.to(torch.uint8).repeat(4)[:, None, None, None]
    pixels = pixels.expand(-1, model.channels, 8, 8).contiguous()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = loss_of(model, pixels)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("name", NAMES)
def test_settings_survive_json_and_a_state_makes_an_equal_twin(name: str) -> None:
    model = trained(name).eval()
    twin = build_autoencoder(json.loads(json.dumps(model.spec())))
    assert type(twin) is type(model)
    assert twin.spec() == model.spec()
    twin.load_state_dict(model.state_dict())
    pixels = images(model)
    assert torch.equal(twin.eval()(pixels).parameters, model(pixels).parameters)
    copied = copy.deepcopy(model)
    assert torch.equal(copied(pixels).parameters, model(pixels).parameters)


@pytest.mark.parametrize("likelihood", likelihoods.names())
@pytest.mark.parametrize("name", NAMES)
def test_any_likelihood_of_any_images_fits(name: str, likelihood: str) -> None:
    model = make(name, channels=2, bits=3, likelihood=likelihood)
    pixels = images(model)
    out = model(pixels)
    assert model.likelihood.loss(out.parameters, pixels).isfinite()
    for made in (model.likelihood.image(out.parameters), model.likelihood.sample(out.parameters)):
        assert made.shape == pixels.shape


@pytest.mark.parametrize("quantizer", [n for n in quantizers.names() if n != "channels_first"])
@pytest.mark.parametrize("name", CODED)
def test_any_quantizer_fits(name: str, quantizer: str) -> None:
    spec = {"quantizer": quantizer, **quantizers.get(quantizer).example}
    spec.pop("dim")
    several = name == "hierarchical"
    setting: dict[str, Any] = {"quantizers": [spec, spec]} if several else {"quantizer": spec}
    model = make(name, dim=8, **setting)
    pixels = images(model)
    assert loss_of(model, pixels).isfinite()
    model.eval()
    out, codes = model(pixels), model.encode(pixels)
    assert all(torch.equal(one, other) for one, other in zip(codes, out.codes, strict=True))
    if quantizer != "identity":
        assert torch.equal(model.decode(codes), out.parameters)
        assert 0 < model.bits_per_image(8, 8) < math.inf
    else:
        # Numbers that are not rounded have no finite rate.
        assert model.bits_per_image(8, 8) == math.inf
        with pytest.raises(ConfigError):
            model.decode(codes)
    twin = build_autoencoder(json.loads(json.dumps(model.spec())))
    assert state(twin).keys() == state(model).keys()


@pytest.mark.parametrize("name", CODED)
def test_a_quantizer_for_channels_first_is_refused(name: str) -> None:
    inner = {"quantizer": "vector", "dim": 8, "codebook_size": 16}
    spec = {"quantizer": "channels_first", "inner": inner}
    setting: dict[str, Any] = (
        {"quantizers": [spec]} if name == "hierarchical" else {"quantizer": spec}
    )
    with pytest.raises(ConfigError, match="inside of channels_first"):
        make(name, **setting)


@pytest.mark.parametrize("name", CODED)
def test_a_level_that_is_not_a_quantizer_is_refused(name: str) -> None:
    several = name == "hierarchical"
    for bad in ("vector", {"codebook_size": 3}, None):
        setting: dict[str, Any] = {"quantizers": [bad]} if several else {"quantizer": bad}
        with pytest.raises(ConfigError):
            make(name, **setting)


@pytest.mark.parametrize("name", CODED)
def test_the_rate_is_that_of_the_grids(name: str) -> None:
    model = make(name)
    expected = 0.0
    for (height, width), sizes in zip(model.grids(16, 24), model.code_sizes, strict=True):
        expected += height * width * sum(math.log2(size) for size in sizes)
    assert model.bits_per_image(16, 24) == pytest.approx(expected)


@pytest.mark.parametrize("name", NAMES)
def test_sizes_that_do_not_divide_are_refused_with_the_number(name: str) -> None:
    model = make(name)
    odd = torch.zeros(2, model.channels, model.stride, model.stride + 2, dtype=torch.uint8)
    with pytest.raises(ShapeError, match=f"divisible by {model.stride}"):
        model(odd)
    with pytest.raises(ShapeError, match=f"divisible by {model.stride}"):
        model.encode(odd)
    with pytest.raises(ShapeError):
        model.grids(model.stride, model.stride + 2)


@pytest.mark.parametrize("name", NAMES)
def test_unfit_pixels_are_refused(name: str) -> None:
    model = make(name, bits=4)
    with pytest.raises(ShapeError, match="whole numbers"):
        model(torch.rand(2, model.channels, 8, 8))
    with pytest.raises(ShapeError):
        model(torch.zeros(2, model.channels + 1, 8, 8, dtype=torch.uint8))
    with pytest.raises(DataError):
        model(torch.full((2, model.channels, 8, 8), 16, dtype=torch.uint8))


@pytest.mark.parametrize("name", CODED)
def test_unfit_codes_are_refused(name: str) -> None:
    model = trained(name).eval()
    codes = list(model.encode(images(model)))
    nothing: list[Tensor | None] = [None] * len(codes)
    wrong: list[Any] = [[], [*codes, codes[0]], nothing, [codes[0][0], *codes[1:]]]
    wrong.append([codes[0][..., :-1], *codes[1:]])
    for bad in wrong:
        with pytest.raises(ShapeError):
            model.decode(bad)
    with pytest.raises(DataError):
        model.decode([codes[0] + 10_000, *codes[1:]])
    if len(codes) > 1:
        with pytest.raises(ShapeError, match="the same images"):
            model.decode([codes[0], *(grid[:2] for grid in codes[1:])])


@pytest.mark.parametrize("name", NAMES)
def test_a_likelihood_of_other_images_is_refused(name: str) -> None:
    other = {"likelihood": "categorical", "channels": 2, "bits": 4}
    with pytest.raises(ConfigError, match="3 channels of 4 bits"):
        make(name, channels=3, bits=4, likelihood=other)


@pytest.mark.parametrize("name", NAMES)
def test_a_frozen_quantizer_lets_the_rest_learn(name: str) -> None:
    model = trained(name)
    for quantizer in model.levels():
        quantizer.freeze()
    model.train()
    before = state(model)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    loss_of(model, images(model)).backward()
    optimizer.step()
    after = state(model)
    for key, tensor in before.items():
        assert torch.equal(tensor, after[key]) == key.startswith("quantizers."), key


@pytest.mark.parametrize("name", NAMES)
def test_a_model_cast_to_bfloat16_works_and_its_quantizers_stay_in_full(name: str) -> None:
    model = trained(name).eval().bfloat16()
    pixels = images(model)
    out = model(pixels)
    assert out.parameters.dtype == torch.bfloat16
    assert model.likelihood.loss(out.parameters, pixels).isfinite()
    if name in CODED:
        assert torch.equal(model.decode(model.encode(pixels)), out.parameters)
    for quantizer in model.levels():
        floats = [t for t in quantizer.state_dict().values() if t.is_floating_point()]
        assert all(tensor.dtype == torch.float32 for tensor in floats)


@pytest.mark.parametrize("name", NAMES)
def test_autocast_trains(name: str) -> None:
    model = make(name)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = loss_of(model, images(model))
    assert loss.dtype == torch.float32
    loss.backward()
    assert all(weight.grad is not None for weight in model.parameters())


@pytest.mark.parametrize("name", NAMES)
def test_no_images_give_no_codes(name: str) -> None:
    model = trained(name).eval()
    out = model(images(model, 0))
    assert out.parameters.shape == (0, model.likelihood.parameters, 8, 8)
    assert all(len(codes) == 0 for codes in out.codes)


@pytest.mark.slow
@pytest.mark.parametrize("name", CODED)
def test_training_and_evaluation_compile_to_one_graph(name: str) -> None:
    model = trained(name)
    pixels = images(model)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    out = compiled(pixels)
    (model.likelihood.loss(out.parameters, pixels) + out.loss).backward()
    model.eval()
    torch.testing.assert_close(compiled(pixels).parameters, model(pixels).parameters)


@pytest.mark.parametrize("name", CODELESS)
def test_what_has_no_codes_says_so(name: str) -> None:
    model = make(name)
    assert model.encode(images(model)) == ()
    assert model.grids(8, 8) == model.code_sizes == ()
    for refused in (lambda: model.decode(()), lambda: model.bits_per_image(8, 8)):
        with pytest.raises(ConfigError):
            refused()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", [{"width": 0}, {"depth": 0}, {"hidden": -1}, {"dim": 0}])
def test_impossible_settings_are_refused_at_construction(name: str, bad: dict[str, Any]) -> None:
    with pytest.raises(SmaltiError):
        make(name, **bad)


@pytest.mark.parametrize("name", CODED)
def test_the_quantizers_are_on_a_list_from_the_top_down(name: str) -> None:
    model = make(name)
    assert len(model.levels()) == len(model.quantizers) >= 1
    assert all(isinstance(quantizer, Quantizer) for quantizer in model.quantizers)
