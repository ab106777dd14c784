"""Findings about codes agree with other people's implementations and with what is known."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from scipy.stats import entropy
from sklearn.metrics import mutual_info_score

from smalti.analysis import (
    CodeGroup,
    change_rate,
    code_distribution,
    entropy_and_information,
    shared_codes,
)
from smalti.analysis.code_distribution import gini
from smalti.errors import DataError, ShapeError


def random_codes(rows: int, books: int, size: int, seed: int = 0) -> torch.Tensor:
    """Codes of which the small ones are commoner."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(rows, books, generator=generator).square() * size).long()


def test_entropies_and_mutual_information_agree_with_scipy_and_scikit_learn() -> None:
    codes = random_codes(3000, 4, 16)
    codes[:, 3] = (codes[:, 0] + codes[:, 1]) % 16
    found = entropy_and_information([CodeGroup("all", codes, [16] * 4)]).numbers["groups"]["all"]
    for book in range(4):
        shares = np.bincount(codes[:, book].numpy(), minlength=16)
        assert found["entropy_bits"][book] == pytest.approx(entropy(shares, base=2), abs=1e-6)
        for other in range(book + 1, 4):
            expected = mutual_info_score(codes[:, book], codes[:, other]) / math.log(2)
            counted = found["mutual_information"]["plug_in_bits"][book][other]
            assert counted == pytest.approx(expected, abs=1e-6)


def test_identical_codebooks_share_all_they_say_and_independent_ones_nothing() -> None:
    # All pairs of 8 x 8 codes equally often: independent, exactly.
    first, second = torch.arange(6400) % 8, torch.arange(6400) // 8 % 8
    codes = torch.stack([first, first, second], dim=1)
    found = entropy_and_information([CodeGroup("all", codes, [8] * 3)]).numbers["groups"]["all"]
    shared = found["mutual_information"]["plug_in_bits"]
    assert found["entropy_bits"] == pytest.approx([3, 3, 3], abs=1e-9)
    assert shared[0][1] == pytest.approx(3, abs=1e-9)
    assert shared[0][2] == pytest.approx(0, abs=1e-9)


def test_entropy_by_place_is_that_of_the_codes_at_the_place() -> None:
    grids = torch.zeros(40, 2, 3, 1, dtype=torch.int64)
    grids[:, 1, 2, 0] = torch.arange(40) % 4
    found = entropy_and_information([CodeGroup("level", grids, [4])])
    places = found.numbers["groups"]["level"]["place_entropy_bits"]
    assert places[1][2] == pytest.approx([2.0])
    assert places[0][0] == [0.0]
    assert [figure.kind for figure in found.figures] == ["bars", "heat_map"]


def test_a_codebook_is_even_where_all_are_chosen_alike_and_uneven_where_one_is() -> None:
    codes = torch.stack([torch.arange(64) % 8, torch.zeros(64, dtype=torch.int64)], dim=1)
    found = code_distribution([CodeGroup("all", codes, [8, 8])])
    even, uneven = found.numbers["groups"]["all"]
    assert (even["evenness"], even["gini"], even["used_share"]) == (pytest.approx(1.0), 0.0, 1.0)
    assert (uneven["evenness"], uneven["gini"], uneven["in_use"]) == (0.0, 7 / 8, 1)
    heat = found.figures[0].as_dict()
    assert heat["values"] == [[8] * 8, [64] + [0] * 7]
    assert "9 of the 16 codewords of 2 codebooks" in found.caption


def test_ginis_coefficient_is_the_mean_difference_of_pairs() -> None:
    counts = torch.tensor([5.0, 1.0, 7.0, 0.0, 2.0])
    apart = np.abs(counts.numpy()[:, None] - counts.numpy()[None]).mean()
    assert gini(counts) == pytest.approx(apart / (2 * counts.numpy().mean()))


def test_large_and_unequal_codebooks_are_drawn_in_few_columns_that_add_up() -> None:
    codes = torch.stack([torch.arange(2000) % 1500, torch.arange(2000) % 3], dim=1)
    heat = code_distribution([CodeGroup("all", codes, [1500, 3])]).figures[0].as_dict()
    assert len(heat["columns"]) <= 512
    assert [sum(value or 0 for value in row) for row in heat["values"]] == [2000, 2000]
    assert heat["values"][1][-1] is None


def test_changes_are_counted_from_checkpoint_to_checkpoint() -> None:
    first = torch.tensor([[0, 1], [2, 3], [4, 5]])
    second, third = first.clone(), first.clone()
    second[0] = torch.tensor([9, 9])
    third[0] = torch.tensor([9, 8])
    found = change_rate({"run": [(10, first), (20, second), (30, third)]})
    rates = found.numbers["runs"]["run"]
    assert [rate["codes_changed"] for rate in rates] == pytest.approx([2 / 6, 1 / 6])
    assert [rate["vectors_changed"] for rate in rates] == pytest.approx([1 / 3, 1 / 3])
    with pytest.raises(DataError, match="at least two checkpoints of run"):
        change_rate({"run": [(0, first)]})
    with pytest.raises(ShapeError, match="the same vectors"):
        change_rate({"run": [(0, first), (1, first[:2])]})


def test_words_with_the_same_codes_are_found() -> None:
    codes = torch.tensor([[0, 1, 2, 3], [0, 1, 2, 9], [7, 7, 7, 7], [8, 8, 8, 8]])
    found = shared_codes(CodeGroup("all", codes, [10] * 4), ["one", "two", "x"], [0, 1, 2])
    assert found.numbers["shared"] == [[4, 3, 0], [3, 4, 0], [0, 0, 4]]
    assert found.numbers["most_shared"] == ["one", "two", 3]
    # Of the six pairs of rows one shares three codes.
    assert found.numbers["mean_shared_by_chance"] == pytest.approx(0.5, abs=0.05)


def test_findings_survive_json() -> None:
    group = CodeGroup("all", random_codes(50, 3, 4), [4] * 3)
    for found in (code_distribution([group]), entropy_and_information([group])):
        assert json.loads(json.dumps(found.as_dict()))["numbers"] == found.numbers


def test_codes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"expected codes \(n, ..., 2\)"):
        CodeGroup("all", torch.zeros(5, 3, dtype=torch.int64), [4, 4])
    with pytest.raises(DataError, match=r"codes of codebook 0 in 0\.\.3"):
        code_distribution([CodeGroup("all", torch.full((5, 1), 4), [4])])
