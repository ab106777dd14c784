"""Arithmetic without rounded sums: the same bits in any order, close to the ordinary kind."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from smalti.priors import Autoregressive, exact


def activations(*shape: int, seed: int = 1, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return exact.activation(scale * torch.randn(shape, generator=generator, dtype=torch.float64))


def test_products_are_the_same_in_any_order_and_company() -> None:
    # As large as it gets: the clamps bind, and sums fill all bits.
    x = activations(64, 512, scale=100)
    generator = torch.Generator().manual_seed(2)
    matrix = exact.weight(200 * torch.randn(300, 512, generator=generator, dtype=torch.float64))
    bias = torch.zeros(300, dtype=torch.float64)
    made = exact.dense(x, matrix, bias)
    shuffled = torch.randperm(512, generator=generator)
    assert torch.equal(exact.dense(x[:, shuffled], matrix[:, shuffled], bias), made)
    for rows in (1, 2, 3, 17, 63):
        assert torch.equal(exact.dense(x[:rows], matrix, bias), made[:rows])
    # In whole numbers of Python, which have no end.
    units = [int(value * 2**exact.ACTIVATION_BITS) for value in x[5].tolist()]
    weights = [int(value * 2**exact.WEIGHT_BITS) for value in matrix[7].tolist()]
    total = sum(a * b for a, b in zip(units, weights, strict=True))
    assert made[5, 7].item() * 2 ** (exact.ACTIVATION_BITS + exact.WEIGHT_BITS) == total


def test_attention_is_the_same_in_any_order_and_close_to_the_ordinary_kind() -> None:
    query, keys, values = (activations(3, 2, n, 16, seed=n) for n in (1, 700, 699))
    keys = keys[:, :, :699]
    found = exact.attended(query, keys, values)
    shuffled = torch.randperm(699, generator=torch.Generator().manual_seed(3))
    assert torch.equal(exact.attended(query, keys[:, :, shuffled], values[:, :, shuffled]), found)
    assert torch.equal(exact.attended(query[:1], keys[:1], values[:1]), found[:1])
    expected = functional.scaled_dot_product_attention(query, keys, values)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("scale", [1e-4, 0.02, 1.0, 300.0])
def test_norms_are_close_to_the_ordinary_kind_for_small_and_large_vectors(scale: float) -> None:
    generator = torch.Generator().manual_seed(4)
    x = exact.stream(scale * torch.randn(5, 96, generator=generator, dtype=torch.float64) + scale)
    gain, bias = torch.randn(2, 96, generator=generator, dtype=torch.float64)
    found = exact.normalised(x, gain, bias, 1e-5)
    shuffled = torch.randperm(96, generator=generator)
    again = exact.normalised(x[:, shuffled], gain[shuffled], bias[shuffled], 1e-5)
    assert torch.equal(again, found[:, shuffled])
    expected = functional.layer_norm(x, (96,), gain, bias, 1e-5)
    torch.testing.assert_close(found, expected, atol=2e-4, rtol=0)


def test_a_vector_of_equal_numbers_has_a_norm() -> None:
    ones = torch.ones(2, 8, dtype=torch.float64)
    found = exact.normalised(3 * ones, ones[0], 0.5 * ones[0], 1e-5)
    assert torch.equal(found, 0.5 * ones)


def test_the_exponential_and_the_activation_are_close_to_those_of_torch() -> None:
    x = torch.linspace(-30, 0, 10001, dtype=torch.float64)
    torch.testing.assert_close(exact.exp(x), x.exp(), atol=1e-9, rtol=1e-5)
    x = torch.linspace(-12, 12, 10001, dtype=torch.float64)
    torch.testing.assert_close(exact.gelu(x), functional.gelu(x), atol=1e-4, rtol=0)


def test_probabilities_are_never_zero_and_add_up_to_one() -> None:
    logits = torch.tensor([[0.0, -1.0, -5000.0], [700.0, 700.0, 0.0]], dtype=torch.float64)
    found = exact.probabilities(logits)
    torch.testing.assert_close(found, logits.softmax(dim=-1), atol=1e-6, rtol=1e-4)
    assert bool((found > 0).all())
    torch.testing.assert_close(found.sum(dim=-1), torch.ones(2, dtype=torch.float64))


def test_every_machine_rounds_the_tables_to_the_same_entries() -> None:
    """No entry lies so near the middle between two steps that a library's error could decide."""
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 40
    coarse, fine = exact.exp_entries()
    gauss = exact.gauss_entries()
    true = [mpmath.exp(-mpmath.mpf(n) / 2**exact.EXP_COARSE_BITS) for n in range(len(coarse))]
    true += [mpmath.exp(-mpmath.mpf(n) / 2**exact.EXP_FINE_BITS) for n in range(len(fine))]
    places = [mpmath.mpf(n) / 2**exact.GAUSS_BITS - exact.GAUSS_END for n in range(len(gauss))]
    true += [mpmath.ncdf(place) for place in places]
    for entry, value in zip([*coarse, *fine, *gauss], true, strict=True):
        scaled = value * 2**exact.TABLE_BITS
        middle = mpmath.floor(scaled) + mpmath.mpf("0.5")
        assert abs(entry - value) < 1e-14 * value
        assert abs(scaled - middle) > 2e-14 * scaled


@pytest.mark.parametrize("threads", [1, 2])
def test_a_wide_prior_walks_alike_with_one_thread_and_one_grid(threads: int) -> None:
    torch.manual_seed(5)
    prior = Autoregressive(((1, 3), (300, 20)), dim=128, depth=2, heads=4)
    codes = prior.sample(40, generator=torch.Generator().manual_seed(6))
    torch.set_num_threads(1)
    alone = prior.stepper(1)
    torch.set_num_threads(threads)
    together = prior.stepper(40)
    for step in codes.flatten(1).T:
        torch.set_num_threads(threads)
        many = together.probabilities()
        together.push(step)
        torch.set_num_threads(1)
        assert torch.equal(alone.probabilities(), many[17:18])
        alone.push(step[17:18])


def test_weights_beyond_all_bounds_still_walk_alike() -> None:
    torch.manual_seed(7)
    prior = Autoregressive(((2, 2), (5,)), dim=16, depth=2, heads=2)
    with torch.no_grad():
        for parameter in prior.parameters():
            parameter.mul_(1e6)
    codes = torch.randint(5, (6, 4))
    together, alone = prior.stepper(6), prior.stepper(1)
    for step in codes.T:
        chances = together.probabilities()
        assert bool(chances.isfinite().all())
        assert torch.equal(chances[2:3], alone.probabilities())
        together.push(step)
        alone.push(step[2:3])
