"""The laws that every registered likelihood keeps; particulars are in tests/autoencoders."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch
from torch import Tensor

import smalti.autoencoders.likelihoods as package
from smalti.autoencoders.likelihoods import Likelihood, build_likelihood, likelihoods
from smalti.errors import ConfigError, DataError, ShapeError

NAMES = likelihoods.names()
EXACT = [name for name in NAMES if likelihoods.get(name).exact]
KINDS = [(1, 8), (3, 8), (2, 5), (5, 2), (3, 1)]


def make(name: str, **changed: Any) -> Likelihood:
    return build_likelihood(name, **{**likelihoods.get(name).example, **changed})


def numbers(likelihood: Likelihood, *lead: int, scale: float = 1.0, seed: int = 1) -> Tensor:
    """Parameters ``(batch, parameters, height, width)`` in float64, of any size."""
    batch, height, width = lead
    generator = torch.Generator().manual_seed(seed)
    shape = (batch, likelihood.parameters, height, width)
    return scale * torch.randn(shape, generator=generator, dtype=torch.float64)


def images(likelihood: Likelihood, *lead: int, seed: int = 2) -> Tensor:
    """Pixels of which a good part is black or white."""
    batch, height, width = lead
    generator = torch.Generator().manual_seed(seed)
    top = likelihood.values - 1
    shape = (batch, likelihood.channels, height, width)
    drawn = torch.randint(-top // 2, top + top // 2 + 2, shape, generator=generator)
    return drawn.clamp(0, top).to(torch.uint8 if likelihood.bits <= 8 else torch.int32)


def test_the_registry_holds_the_whole_family() -> None:
    assert {"square_error", "categorical", "logistic_mixture"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_class_can_be_imported_from_the_package(name: str) -> None:
    kind = likelihoods.get(name)
    assert getattr(package, kind.__name__) is kind


@pytest.mark.parametrize("name", NAMES)
def test_settings_survive_json(name: str) -> None:
    likelihood = make(name)
    twin = build_likelihood(json.loads(json.dumps(likelihood.spec())))
    assert twin == likelihood
    assert hash(twin) == hash(likelihood)
    assert twin != make(name, bits=7)


@pytest.mark.parametrize("bits", [1, 3, 8, 12, 16])
@pytest.mark.parametrize("name", NAMES)
def test_pixels_are_scaled_to_both_ends_and_come_back(name: str, bits: int) -> None:
    likelihood = make(name, channels=1, bits=bits)
    top = 2**bits - 1
    values = torch.arange(2**bits, dtype=torch.int32).view(1, 1, 1, -1)
    scaled = likelihood.scaled(values)
    assert scaled.dtype == torch.float32
    assert float(scaled.min()) == -1.0
    assert float(scaled.max()) == pytest.approx(1.0, abs=1e-6)
    expected = values.double() * 2 / top - 1
    torch.testing.assert_close(scaled.double(), expected, atol=1e-6, rtol=0)
    assert torch.equal(likelihood.as_pixels(scaled).int(), values)


@pytest.mark.parametrize(("channels", "bits"), KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_losses_and_gradients_are_finite_for_extreme_numbers(
    name: str, channels: int, bits: int
) -> None:
    likelihood = make(name, channels=channels, bits=bits)
    pixels = images(likelihood, 2, 3, 5)
    for scale in (0.0, 1.0, 30.0, 1e4):
        parameters = numbers(likelihood, 2, 3, 5, scale=scale).float().requires_grad_()
        loss = likelihood.loss(parameters, pixels)
        assert loss.shape == ()
        assert loss.isfinite()
        loss.backward()
        assert parameters.grad is not None
        assert parameters.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_half_precision_are_read_in_full(name: str, dtype: torch.dtype) -> None:
    likelihood = make(name)
    pixels = images(likelihood, 2, 4, 4)
    half = numbers(likelihood, 2, 4, 4).to(dtype)
    assert likelihood.loss(half, pixels).dtype == torch.float32
    torch.testing.assert_close(
        likelihood.loss(half, pixels), likelihood.loss(half.float(), pixels), rtol=0, atol=0
    )


@pytest.mark.parametrize("name", NAMES)
def test_autocast_changes_nothing(name: str) -> None:
    likelihood = make(name, bits=8)
    pixels, parameters = images(likelihood, 2, 4, 4), numbers(likelihood, 2, 4, 4).float()

    def results() -> list[Tensor]:
        drawn = likelihood.sample(parameters, torch.Generator().manual_seed(0))
        return [likelihood.loss(parameters, pixels), likelihood.image(parameters), drawn]

    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = results()
    assert all(torch.equal(one, other) for one, other in zip(results(), rounded, strict=True))


@pytest.mark.parametrize(("channels", "bits"), [*KINDS, (1, 12)])
@pytest.mark.parametrize("name", NAMES)
def test_images_and_samples_are_pixels(name: str, channels: int, bits: int) -> None:
    likelihood = make(name, channels=channels, bits=bits)
    parameters = numbers(likelihood, 2, 3, 4, scale=4.0)
    for made in (likelihood.image(parameters), likelihood.sample(parameters)):
        assert made.dtype == (torch.uint8 if bits <= 8 else torch.int32)
        assert made.shape == (2, channels, 3, 4)
        assert int(made.min()) >= 0
        assert int(made.max()) < 2**bits


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_draws_the_same_images(name: str) -> None:
    likelihood = make(name)
    parameters = numbers(likelihood, 2, 8, 8)
    one, same, other = (
        likelihood.sample(parameters, torch.Generator().manual_seed(seed)) for seed in (3, 3, 4)
    )
    assert torch.equal(one, same)
    assert torch.equal(one, other) != likelihood.exact


@pytest.mark.parametrize(("channels", "bits"), [*KINDS, (2, 10)])
@pytest.mark.parametrize("name", EXACT)
def test_the_probabilities_of_all_values_add_up_to_1(name: str, channels: int, bits: int) -> None:
    likelihood = make(name, channels=channels, bits=bits)
    pixels = images(likelihood, 2, 3, 2)
    for scale in (0.5, 5.0, 100.0):
        parameters = numbers(likelihood, 2, 3, 2, scale=scale)
        for channel in range(channels):
            found = likelihood.probabilities(parameters, pixels, channel)
            assert found.dtype == torch.float64
            assert found.shape == (2, 3, 2, 2**bits)
            assert bool((found >= 0).all())
            torch.testing.assert_close(
                found.sum(-1), torch.ones(2, 3, 2, dtype=torch.float64), rtol=0, atol=1e-12
            )


@pytest.mark.parametrize(("channels", "bits"), KINDS)
@pytest.mark.parametrize("name", EXACT)
def test_the_nats_of_an_image_are_its_probabilities_channel_by_channel(
    name: str, channels: int, bits: int
) -> None:
    likelihood = make(name, channels=channels, bits=bits)
    pixels, parameters = images(likelihood, 3, 4, 2), numbers(likelihood, 3, 4, 2, scale=2.0)
    expected = torch.zeros(3, dtype=torch.float64)
    for channel in range(channels):
        found = likelihood.probabilities(parameters, pixels, channel)
        chosen = found.gather(-1, pixels[:, channel].long().unsqueeze(-1))
        expected -= chosen.log().flatten(1).sum(1)
    torch.testing.assert_close(likelihood.nats(parameters, pixels), expected, rtol=1e-9, atol=1e-9)
    # In float32, which training uses, to the digits that it has.
    torch.testing.assert_close(
        likelihood.nats(parameters.float(), pixels).double(), expected, rtol=1e-4, atol=1e-3
    )
    torch.testing.assert_close(
        likelihood.loss(parameters, pixels), expected.sum() / pixels.numel(), rtol=1e-9, atol=0
    )


@pytest.mark.parametrize("name", EXACT)
def test_a_channel_does_not_read_itself_or_what_comes_after(name: str) -> None:
    likelihood = make(name, channels=3)
    pixels, parameters = images(likelihood, 2, 4, 4), numbers(likelihood, 2, 4, 4)
    for channel in range(3):
        unknown = pixels.clone()
        unknown[:, channel:] = 0
        assert torch.equal(
            likelihood.probabilities(parameters, pixels, channel),
            likelihood.probabilities(parameters, unknown, channel),
        )


@pytest.mark.parametrize("name", EXACT)
def test_samples_have_the_frequencies_that_the_probabilities_say(name: str) -> None:
    likelihood = make(name, channels=2, bits=2)
    one = numbers(likelihood, 1, 1, 1)
    count = 40_000
    drawn = likelihood.sample(
        one.expand(1, -1, 200, 200), torch.Generator().manual_seed(0)
    ).flatten(2)[0]
    joint = torch.zeros(4, 4, dtype=torch.float64)
    joint.index_put_((drawn[0].long(), drawn[1].long()), torch.tensor(1.0).double(), True)
    expected = torch.zeros(4, 4, dtype=torch.float64)
    for value in range(4):
        pixels = torch.tensor([value, 0], dtype=torch.uint8).view(1, 2, 1, 1)
        first = likelihood.probabilities(one, pixels, 0)[0, 0, 0, value]
        expected[value] = first * likelihood.probabilities(one, pixels, 1)[0, 0, 0]
    # Five standard deviations of a count.
    room = 5 * (expected * (1 - expected) / count).sqrt() + 1e-6
    assert bool(((joint / count - expected).abs() < room).all())


@pytest.mark.parametrize("name", EXACT)
def test_the_nats_of_samples_are_the_entropy(name: str) -> None:
    likelihood = make(name, channels=1, bits=4)
    one = numbers(likelihood, 1, 1, 1)
    nothing = torch.zeros(1, 1, 1, 1, dtype=torch.uint8)
    shares = likelihood.probabilities(one, nothing, 0)
    entropy = float(torch.special.entr(shares).sum())
    spread = float((shares * shares.clamp(min=1e-300).log().square()).sum() - entropy**2) ** 0.5
    many = one.expand(1, -1, 200, 200)
    drawn = likelihood.sample(many, torch.Generator().manual_seed(0))
    assert float(likelihood.loss(many, drawn)) == pytest.approx(entropy, abs=5 * spread / 200)


@pytest.mark.parametrize("name", EXACT)
def test_the_image_is_the_mean_of_the_samples(name: str) -> None:
    likelihood = make(name, channels=1, bits=8)
    parameters = numbers(likelihood, 1, 1, 4, scale=0.3)
    if name == "logistic_mixture":
        # Means within the range and narrow bumps, so that clipping moves no mean.
        parameters = parameters.clamp(-0.5, 0.5)
        parameters[:, 2 * likelihood.parameters // 3 :] = -4.0
    many = parameters.repeat(4000, 1, 1, 1)
    mean = likelihood.sample(many, torch.Generator().manual_seed(0)).double().mean(0)
    image = likelihood.image(parameters)[0].double()
    room = 0.5 + 5 * 74 / math.sqrt(4000)  # a half for rounding, 74 is the widest spread
    assert bool(((mean - image).abs() < room).all())


@pytest.mark.parametrize("name", NAMES)
def test_unfit_pixels_are_refused_with_what_they_are(name: str) -> None:
    likelihood = make(name, channels=3, bits=4)
    parameters = numbers(likelihood, 2, 4, 4)
    with pytest.raises(ShapeError, match="whole numbers"):
        likelihood.loss(parameters, torch.rand(2, 3, 4, 4))
    with pytest.raises(ShapeError, match=r"\(batch, 3, height, width\)"):
        likelihood.scaled(torch.zeros(2, 1, 4, 4, dtype=torch.uint8))
    with pytest.raises(DataError, match=r"0\.\.15, got 0\.\.16"):
        likelihood.scaled(torch.tensor([0, 16, 3]).view(1, 3, 1, 1))
    with pytest.raises(DataError):
        likelihood.scaled(torch.tensor([0, -1, 3]).view(1, 3, 1, 1))


@pytest.mark.parametrize("name", NAMES)
def test_unfit_parameters_are_refused_with_what_was_expected(name: str) -> None:
    likelihood = make(name, channels=3, bits=4)
    pixels = images(likelihood, 2, 4, 4)
    with pytest.raises(ShapeError, match=rf"\(2, {likelihood.parameters}, 4, 4\)"):
        likelihood.loss(numbers(likelihood, 2, 4, 5), pixels)
    with pytest.raises(ShapeError):
        likelihood.image(torch.zeros(2, likelihood.parameters + 1, 4, 4))
    with pytest.raises(ShapeError):
        likelihood.image(torch.zeros(2, likelihood.parameters))


@pytest.mark.parametrize("bad", [{"channels": 0}, {"bits": 0}, {"bits": 17}, {"bits": 2.5}])
@pytest.mark.parametrize("name", NAMES)
def test_impossible_settings_are_refused_at_construction(name: str, bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        make(name, **bad)


@pytest.mark.parametrize("name", EXACT)
def test_a_channel_that_is_not_there_is_refused(name: str) -> None:
    likelihood = make(name, channels=3)
    for channel in (-1, 3):
        with pytest.raises(ConfigError, match="channel"):
            likelihood.probabilities(
                numbers(likelihood, 1, 2, 2), images(likelihood, 1, 2, 2), channel
            )


@pytest.mark.parametrize("name", [name for name in NAMES if name not in EXACT])
def test_what_is_not_exact_refuses_to_name_probabilities(name: str) -> None:
    likelihood = make(name)
    parameters, pixels = numbers(likelihood, 1, 2, 2), images(likelihood, 1, 2, 2)
    with pytest.raises(ConfigError, match="categorical"):
        likelihood.nats(parameters, pixels)
    with pytest.raises(ConfigError, match="categorical"):
        likelihood.probabilities(parameters, pixels, 0)


@pytest.mark.parametrize("name", NAMES)
def test_no_images_have_no_nats(name: str) -> None:
    likelihood = make(name)
    parameters, pixels = numbers(likelihood, 0, 4, 4), images(likelihood, 0, 4, 4)
    assert likelihood.image(parameters).shape == (0, 3, 4, 4)
    if likelihood.exact:
        assert likelihood.nats(parameters, pixels).shape == (0,)
        assert likelihood.probabilities(parameters, pixels, 1).shape == (0, 4, 4, 16)
