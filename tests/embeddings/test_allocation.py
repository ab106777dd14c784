"""The split of a table into tiers, against all splits there are."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
import torch
from torch import Tensor

from smalti.embeddings.allocation import Allocation, Storage, allocate


def random_storages(rng: np.random.Generator, count: int) -> list[Storage]:
    """Whole bytes, so that nothing is rounded; some are worse than others in every way."""
    row_bytes = rng.choice(np.arange(1, 40), count, replace=False)
    return [
        Storage(f"s{i}", float(some), float(rng.integers(0, 60)), float(rng.random()))
        for i, some in enumerate(row_bytes)
    ]


def least_loss(importance: Tensor, storages: list[Storage], budget: float, tiers: int) -> float:
    """Every order of every choice of storages, every cut; tiers need not go from fine to rough."""
    ranked = -np.sort(-importance.double().numpy())
    rows, best = len(ranked), np.inf
    for count in range(1, tiers + 1):
        for chosen in permutations(storages, count):
            for inner in combinations(range(1, rows), count - 1):
                edges = (0, *inner, rows)
                pieces = list(zip(chosen, edges, edges[1:], strict=False))
                spent = sum(s.fixed_bytes + s.row_bytes * (b - a) for s, a, b in pieces)
                if spent <= budget:
                    best = min(best, sum(s.distortion * ranked[a:b].sum() for s, a, b in pieces))
    return float(best)


def worked_out(importance: Tensor, made: Allocation) -> tuple[float, float]:
    """The loss and the bytes of the tiers themselves."""
    ranked = -np.sort(-importance.double().numpy())
    loss, spent, first = 0.0, 0.0, 0
    for storage, rows in made.tiers:
        loss += storage.distortion * ranked[first : first + rows].sum()
        spent += storage.fixed_bytes + storage.row_bytes * rows
        first += rows
    assert first == len(ranked)
    return loss, spent


@pytest.mark.parametrize("tiers", [1, 2, 3])
@pytest.mark.parametrize("seed", range(20))
def test_no_split_loses_less(seed: int, tiers: int) -> None:
    rng = np.random.default_rng(seed)
    storages = random_storages(rng, 4)
    importance = torch.from_numpy(rng.pareto(1.0, 11))
    for budget in (60.0, 120.0, 200.0, 300.0, 500.0):
        made = allocate(importance, storages, budget, tiers)
        expected = least_loss(importance, storages, budget, tiers)
        if made is None:
            assert expected == np.inf
            continue
        assert made.loss == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert len(made.tiers) <= tiers
        assert all(rows > 0 for _, rows in made.tiers)
        assert (made.loss, made.total_bytes) == pytest.approx(worked_out(importance, made))
        assert made.total_bytes <= budget


@pytest.mark.parametrize("seed", range(3))
def test_cuts_of_a_large_table_are_nearly_the_best(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = 600
    importance = torch.from_numpy(rng.pareto(0.8, rows))
    storages = [
        Storage("fine", 400.0, 0.0, 0.001),
        Storage("good", 50.0, 5000.0, 0.1),
        Storage("rough", 16.0, 3000.0, 0.3),
    ]
    budget = 40.0 * rows
    made = allocate(importance, storages, budget)
    assert made is not None
    worth = np.concatenate([[0.0], np.cumsum(-np.sort(-importance.numpy()))])
    one, two = np.meshgrid(np.arange(rows + 1), np.arange(rows + 1), indexing="ij")
    spent = 8000 + 400 * one + 50 * (two - one) + 16 * (rows - two)
    losses = 0.001 * worth[one] + 0.1 * (worth[two] - worth[one]) + 0.3 * (worth[-1] - worth[two])
    best = losses[(one <= two) & (spent <= budget)].min()
    assert best <= made.loss * (1 + 1e-9)
    assert made.loss <= 1.01 * best


def test_the_order_of_rows_and_of_storages_does_not_matter() -> None:
    rng = np.random.default_rng(5)
    storages = random_storages(rng, 4)
    importance = torch.from_numpy(rng.pareto(1.0, 30))
    one = allocate(importance, storages, 400.0)
    other = allocate(importance[torch.randperm(30)], storages[::-1], 400.0)
    assert one is not None
    assert other is not None
    assert one.tiers == other.tiers
    assert one.loss == pytest.approx(other.loss)


def test_a_budget_that_is_just_met_is_met() -> None:
    fine, rough = Storage("fine", 4.0, 3.0, 0.0), Storage("rough", 1.0, 2.0, 1.0)
    importance = torch.tensor([1.0, 2.0])
    # By hand: 2 * 4 + 3 = 11 bytes for all fine, 4 + 1 + 5 = 10 for one of each, 4 for rough.
    for budget, names, loss in [
        (11.0, ["fine"], 0.0),
        (10.0, ["fine", "rough"], 1.0),
        (9.0, ["rough"], 3.0),
        (4.0, ["rough"], 3.0),
    ]:
        made = allocate(importance, [fine, rough], budget)
        assert made is not None
        assert [storage.name for storage, _ in made.tiers] == names
        assert made.loss == loss


def test_nothing_that_fits_is_none() -> None:
    assert allocate(torch.ones(5), [Storage("a", 2.0, 1.0, 0.5)], 10.9) is None
    assert allocate(torch.ones(5), [], 100.0) is None


def test_one_row_has_one_tier() -> None:
    storages = [Storage("fine", 9.0, 0.0, 0.1), Storage("rough", 3.0, 0.0, 0.9)]
    made = allocate(torch.ones(1), storages, 10.0)
    assert made is not None
    assert made.tiers == ((storages[0], 1),)


def test_storages_of_equal_row_bytes_are_weighed_too() -> None:
    # By hand: b fits and loses half as much as a; with c for the commonest row nothing fits.
    storages = [Storage("a", 2.0, 0.0, 1.0), Storage("b", 2.0, 5.0, 0.5), Storage("c", 8.0, 0.0, 0)]
    made = allocate(torch.ones(10), storages, 26.0)
    assert made is not None
    assert [storage.name for storage, _ in made.tiers] == ["b"]
