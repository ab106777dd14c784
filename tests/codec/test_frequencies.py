"""Probabilities become counts that a coder can use, the same ones everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smalti.codec.frequencies import TOTAL, frequencies
from smalti.errors import ConfigError, DataError


def test_counts_are_one_each_and_shares_of_the_rest() -> None:
    # By hand: 2^24 - 4 = 16777212 counts are shared; a quarter of them is 4194303.
    counts = frequencies(np.array([[0.25, 0.5, 0.25, 0.0], [0.0, 0.0, 0.0, 1.0]]))
    assert counts.tolist() == [[4194304, 8388607, 4194304, 1], [1, 1, 1, 16777213]]


def test_what_rounding_leaves_goes_to_the_likeliest_symbol() -> None:
    # By hand: 2^24 - 3 = 16777213, a third of which is 5592404.33; one count is left.
    assert frequencies(np.full((1, 3), 1 / 3)).tolist() == [[5592406, 5592405, 5592405]]


@given(st.integers(0, 2**32 - 1), st.integers(2, 300), st.floats(0.1, 60.0))
def test_every_symbol_can_be_coded_and_counts_add_up(seed: int, size: int, spread: float) -> None:
    logits = np.random.default_rng(seed).normal(size=(3, size)) * spread
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    counts = frequencies(shares)
    assert counts.min() >= 1
    assert (counts.sum(axis=1) == TOTAL).all()
    assert np.abs(counts / TOTAL - shares).max() <= (size + 1) / TOTAL
    # A row does not depend on its neighbours.
    assert (frequencies(shares[1:2]) == counts[1:2]).all()


def test_the_resolution_costs_less_than_a_ten_thousandth_of_the_rate() -> None:
    logits = np.random.default_rng(0).normal(size=(50, 256)) * 2
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    entropy = -(shares * np.log2(shares)).sum()
    paid = -(shares * np.log2(frequencies(shares) / TOTAL)).sum()
    assert entropy <= paid < entropy * 1.0001


@pytest.mark.parametrize(
    "bad", [[np.nan, 1.0], [0.5, 0.4], [0.5, 0.501], [-0.5, 1.5], [np.inf, 0.0]]
)
def test_what_are_no_probabilities_is_refused(bad: list[float]) -> None:
    with pytest.raises(DataError, match="add up to 1"):
        frequencies(np.array([bad]))


def test_the_largest_alphabet_fits() -> None:
    counts = frequencies(np.full((1, 2**18), 2.0**-18 * (1 + 1e-7)))
    assert counts.min() >= 1
    assert counts.sum() == TOTAL
    with pytest.raises(ConfigError, match="2 to 262144"):
        frequencies(np.full((1, 2**18 + 1), 1 / (2**18 + 1)))


def test_an_alphabet_of_one_symbol_is_refused() -> None:
    with pytest.raises(ConfigError, match="2 to"):
        frequencies(np.ones((1, 1)))
