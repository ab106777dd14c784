"""What a study concludes, from figures that are made up."""

from __future__ import annotations

import math
from typing import Any

import pytest

from smalti.recipes.images.codebook_balance import ArmFigures, Findings
from smalti.recipes.images.codebook_balance.arms import arms_of

PAIRS = ((16, 4), (64, 1))


def study(adaptive: list[float], adaptive_bits: float) -> Findings:
    """Two pairs with errors 0.2 at 4 bits and 0.1 at 6 bits, and a pool as said, of two seeds."""
    errors = {"16x4": [0.2, 0.2], "64x1": [0.08, 0.12], "adaptive": adaptive}
    bits = {"16x4": 4.0, "64x1": 6.0, "adaptive": adaptive_bits}

    def figures(name: str, seed: int) -> dict[str, Any]:
        return {"mse_0_to_1": errors[name][seed], "rate_bits": bits[name], "coded_bits": 1.0}

    arms = tuple(
        ArmFigures(
            arm,
            {seed: figures(arm.name, seed) for seed in (0, 1)},
            {0: [{"step": 5, "shares": [1.0, 0.0]}], 1: [{"step": 5, "shares": [0.5, 0.5]}]},
        )
        for arm in arms_of(PAIRS, dim=8, steps=5, controls=False)
    )
    return Findings(PAIRS, 5, (0, 1), {"images": 10}, {}, arms)


def test_the_best_fixed_pair_has_the_least_mean_error() -> None:
    found = study([0.05, 0.05], 5.0)
    assert found.best_fixed.arm.name == "64x1"
    content = found.as_dict()
    assert content["best_fixed"] == "64x1"
    arm = content["arms"][1]
    assert arm["mean"]["mse_0_to_1"] == pytest.approx(0.1)
    # By hand: the standard deviation of 0.08 and 0.12, with one degree of freedom.
    assert arm["spread"]["mse_0_to_1"] == pytest.approx(math.sqrt(2 * 0.02**2))


def test_a_win_is_told_with_its_rate_and_what_it_stores() -> None:
    found = study([0.05, 0.13], 6.5)
    told = "\n".join(found.sentences())
    assert "MSE 0.090000 at 6.50 bits a place: less error" in told
    assert "at 0.50 bits a place more" in told
    assert "2 times its codebook numbers" in told
    assert "less error in 1 of 2 seeds" in told
    assert found.verdict()["more_bits_than_best_fixed"] == pytest.approx(0.5)


def test_a_loss_is_told_as_a_loss_beside_the_best_pair_of_no_more_bits() -> None:
    found = study([0.15, 0.15], 5.0)
    told = "\n".join(found.sentences())
    assert "no less error than the best fixed pair, at 1.00 bits a place less" in told
    assert "with no more bits than adaptive: 16x4, MSE 0.200000 at 4.00 bits" in told


def test_where_every_pair_costs_more_bits_that_is_said() -> None:
    found = study([0.3, 0.3], 3.0)
    assert found.best_at_no_more_bits is None
    assert "no fixed pair has as few bits" in "\n".join(found.sentences())


def test_history_is_a_mean_over_seeds() -> None:
    entry = study([0.1, 0.1], 5.0).adaptive.mean_history()[0]
    assert entry == {"step": 5, "shares": [0.75, 0.25]}
