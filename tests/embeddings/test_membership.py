"""Places inside and outside a set of rows, against running totals of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from smalti.embeddings.membership import Membership

SIZES = [1, 2, 31, 32, 33, 63, 64, 65, 96, 127, 1000, 4097]


def masks(rows: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(rows)
    every = np.arange(rows)
    return {
        "none": np.zeros(rows, bool),
        "all": np.ones(rows, bool),
        "few": rng.random(rows) < 0.05,
        "half": rng.random(rows) < 0.5,
        "most": rng.random(rows) < 0.95,
        "first": every == 0,
        "last": every == rows - 1,
        "ends of words": every % 32 == 31,
    }


@pytest.mark.parametrize("kind", list(masks(1)))
@pytest.mark.parametrize("rows", SIZES)
def test_places_are_running_totals(rows: int, kind: str) -> None:
    mask = masks(rows)[kind]
    members = Membership(rows)
    members.fill(torch.from_numpy(mask))
    inside, rank, others = members(torch.arange(rows))
    np.testing.assert_array_equal(inside.numpy(), mask)
    np.testing.assert_array_equal(rank.numpy(), np.cumsum(mask) - mask)
    np.testing.assert_array_equal(others.numpy(), np.cumsum(~mask) - ~mask)


def test_ids_may_come_in_any_order_and_again_and_not_at_all() -> None:
    mask = masks(1000)["half"]
    members = Membership(1000)
    members.fill(torch.from_numpy(mask))
    ids = np.random.default_rng(1).integers(0, 1000, 5000)
    inside, rank, others = members(torch.from_numpy(ids))
    np.testing.assert_array_equal(inside.numpy(), mask[ids])
    np.testing.assert_array_equal(rank.numpy(), (np.cumsum(mask) - mask)[ids])
    np.testing.assert_array_equal(others.numpy(), (np.cumsum(~mask) - ~mask)[ids])
    assert [len(part) for part in members(torch.arange(0))] == [0, 0, 0]


def test_filling_again_forgets_what_was_there() -> None:
    members = Membership(70)
    members.fill(torch.ones(70, dtype=torch.bool))
    members.fill(torch.arange(70) == 40)
    assert members(torch.tensor([39, 40, 41]))[0].tolist() == [False, True, False]
    assert members(torch.tensor([69]))[1].tolist() == [1]


@pytest.mark.parametrize("rows", SIZES)
def test_it_takes_two_bits_a_row(rows: int) -> None:
    held = sum(it.numel() * it.element_size() for it in Membership(rows).state_dict().values())
    assert held == 8 * int(np.ceil(rows / 32))


def test_it_is_loaded_as_it_was_saved() -> None:
    members, twin = Membership(100), Membership(100)
    members.fill(torch.from_numpy(masks(100)["half"]))
    twin.load_state_dict(members.state_dict())
    for one, other in zip(members(torch.arange(100)), twin(torch.arange(100)), strict=True):
        assert torch.equal(one, other)
