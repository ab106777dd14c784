"""What is particular to Uniform; the common contract is in tests/contracts."""

from __future__ import annotations

import math

import pytest
import torch

from smalti.priors import Uniform


def test_a_grid_costs_the_logarithms_of_the_code_sizes() -> None:
    prior = Uniform(level=((8, 8), (256, 16, 3)))
    codes = torch.zeros(2, 8, 8, 3, dtype=torch.int64)
    # By hand: 8 + 4 + log2 3 bits a place.
    expected = 64 * (12 + math.log2(3)) * math.log(2)
    assert prior.nats(codes).tolist() == pytest.approx([expected, expected], rel=1e-12)
    assert float(prior.loss(codes)) == pytest.approx(expected / 192)


def test_there_is_nothing_to_learn_or_to_save() -> None:
    prior = Uniform(level=((8, 8), (256,)))
    assert not list(prior.parameters())
    assert not prior.state_dict()


def test_large_codebooks_take_no_memory() -> None:
    # A table for each place would have 2^44 numbers.
    prior = Uniform(level=((16, 16), (2**36,)))
    codes = torch.full((3, 16, 16, 1), 2**35)
    assert prior.nats(codes).tolist() == pytest.approx([256 * 36 * math.log(2)] * 3)
