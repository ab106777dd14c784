"""What a row counts in a fit, worked out by hand."""

from __future__ import annotations

import pytest
import torch

from smalti.embeddings.weighting import row_weights


def test_without_counts_all_rows_count_alike() -> None:
    assert row_weights(None, 3).tolist() == [1.0, 1.0, 1.0]


def test_a_power_of_zero_makes_counts_not_matter() -> None:
    weights = row_weights(torch.tensor([100.0, 0.0, 7.0]), 3, power=0.0)
    assert weights.tolist() == [1.0, 1.0, 1.0]


def test_a_row_that_never_occurs_counts_as_half_an_occurrence() -> None:
    # By hand: 4, 1/2 and 3/2 have the mean 2.
    weights = row_weights(torch.tensor([3.5, 0.0, 1.0]), 3, power=1.0)
    torch.testing.assert_close(weights, torch.tensor([2.0, 0.25, 0.75]))


def test_between_the_powers_lie_roots() -> None:
    # By hand: the roots of 4, 1 and 9 are 2, 1 and 3, with the mean 2.
    weights = row_weights(torch.tensor([3.5, 0.5, 8.5]), 3, power=0.5)
    torch.testing.assert_close(weights, torch.tensor([1.0, 0.5, 1.5]))


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.float64])
def test_the_mean_is_one_and_no_weight_is_lost(dtype: torch.dtype) -> None:
    counts = torch.zeros(1000, dtype=dtype)
    counts[0] = 10**12
    for power in (0.25, 0.5, 1.0):
        weights = row_weights(counts, 1000, power)
        assert weights.dtype == torch.float32
        assert weights.mean() == pytest.approx(1.0, rel=1e-5)
        assert (weights > 0).all()
