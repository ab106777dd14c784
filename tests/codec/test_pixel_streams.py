"""Pixels under a likelihood, every channel count and bit depth, back to the last bit."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from smalti.autoencoders.likelihoods import Likelihood, build_likelihood
from smalti.codec.pixel_streams import read_pixels, write_pixels
from smalti.errors import ArtifactError, DataError
from smalti.layers.modes import one_thread

KINDS = [
    ("categorical", 3, 8),
    ("categorical", 1, 1),
    ("logistic_mixture", 3, 8),
    ("logistic_mixture", 4, 5),
    ("logistic_mixture", 1, 12),
    # Its probabilities are formed two rows at a time.
    ("logistic_mixture", 1, 16),
]


def images_of(name: str, channels: int, bits: int) -> tuple[Likelihood, Tensor, Tensor]:
    """A likelihood, parameters of some images and images drawn from them."""
    generator = torch.Generator().manual_seed(bits)
    settings = {"components": 3} if name == "logistic_mixture" else {}
    likelihood = build_likelihood(name, channels=channels, bits=bits, **settings)
    shape = (3, likelihood.parameters, 5, 8) if bits < 16 else (1, likelihood.parameters, 3, 8)
    parameters = torch.randn(shape, generator=generator, dtype=torch.float64)
    return likelihood, parameters, likelihood.sample(parameters, generator)


@pytest.mark.parametrize(("name", "channels", "bits"), KINDS)
def test_pixels_come_back_and_take_what_the_likelihood_says(
    name: str, channels: int, bits: int
) -> None:
    likelihood, parameters, pixels = images_of(name, channels, bits)
    stream = write_pixels(likelihood, parameters.split(1), pixels)
    found = read_pixels(likelihood, parameters.split(1), stream)
    assert torch.equal(found, pixels)
    assert found.dtype == pixels.dtype
    promised = float(likelihood.nats(parameters, pixels).sum()) / math.log(2)
    assert promised - 1 <= 8 * len(stream.payload) <= promised * 1.001 + 64


@pytest.mark.parametrize("name", ["categorical", "logistic_mixture"])
def test_streams_do_not_depend_on_threads(name: str) -> None:
    likelihood, parameters, pixels = images_of(name, 3, 8)
    streams = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        streams.append(write_pixels(likelihood, parameters.split(1), pixels))
        assert torch.get_num_threads() == threads
    assert streams[0] == streams[1]


def test_pixels_that_nobody_expected_come_back_too() -> None:
    likelihood = build_likelihood("logistic_mixture", channels=3)
    # Narrow bumps at black, and an image in white: far beyond what a float can say.
    parameters = torch.full((1, likelihood.parameters, 4, 4), -20.0, dtype=torch.float64)
    pixels = torch.full((1, 3, 4, 4), 255, dtype=torch.uint8)
    stream = write_pixels(likelihood, parameters.split(1), pixels)
    assert torch.equal(read_pixels(likelihood, parameters.split(1), stream), pixels)
    # At worst a count of one of 2^24 each.
    assert len(stream.payload) <= 3 * 48 + 8


def test_other_parameters_are_found_out() -> None:
    likelihood, parameters, pixels = images_of("logistic_mixture", 3, 8)
    stream = write_pixels(likelihood, parameters.split(1), pixels)
    with pytest.raises(ArtifactError, match="other probabilities"):
        read_pixels(likelihood, (parameters * 1.001).split(1), stream)


def test_threads_are_as_before_also_after_an_error() -> None:
    torch.set_num_threads(2)
    with one_thread():
        assert torch.get_num_threads() == 1
    likelihood, parameters, pixels = images_of("categorical", 1, 1)
    with pytest.raises(DataError), one_thread():
        likelihood.probabilities(parameters, pixels + 2, 0)
    assert torch.get_num_threads() == 2
