"""Findings about tables: neighbours, rank, bytes."""

from __future__ import annotations

import json
import math
import sys

import numpy as np
import pytest
import torch
from sklearn.neighbors import NearestNeighbors

from smalti.analysis import find_neighbours, neighbours, rank, storage
from smalti.analysis.neighbours import Neighbours
from smalti.analysis.rank import singular_values
from smalti.analysis.storage import commonest
from smalti.embeddings import CodedTable, build_compressor
from smalti.embeddings.tiers import tiers
from smalti.errors import DataError, ShapeError


def generic(parts: int, size: int, dim: int, rows: int = 600) -> CodedTable:
    generator = torch.Generator().manual_seed(1)
    codes = torch.randint(size, (rows, parts), generator=generator)
    books = torch.randn(parts, 1, size, dim // parts, generator=generator)
    return CodedTable.holding(codes, books, precision="float32")


@pytest.mark.parametrize(
    ("parts", "size", "expected"),
    # D (K - 1) + 1 by hand, and the width where that is less.
    [(8, 4, 25), (16, 2, 17), (8, 8, 32), (4, 3, 9)],
)
def test_the_rank_is_that_of_the_corrected_formula(parts: int, size: int, expected: int) -> None:
    table = generic(parts, size, dim=32)
    found = rank(table).numbers
    assert found["rank"] == found["formula"] == found["formula_of_codes_in_use"] == expected
    assert np.linalg.matrix_rank(table.dense().double().numpy(), rtol=1e-6) == expected


def test_codewords_that_nobody_uses_lower_the_rank() -> None:
    table = generic(8, 4, dim=32)
    codes = table.take_codes(torch.arange(600))
    codes[:, 0] = 2
    books = table.codebooks.detach()
    found = rank(CodedTable.holding(codes, books, precision="float32")).numbers
    assert (found["rank"], found["formula_of_codes_in_use"], found["formula"]) == (22, 22, 25)


def test_singular_values_of_blocks_are_those_of_the_whole() -> None:
    rows = torch.randn(50, 6, generator=torch.Generator().manual_seed(0))
    expected = np.linalg.svd(rows.double().numpy(), compute_uv=False)
    np.testing.assert_allclose(singular_values(rows.split(7)), expected, rtol=1e-9)


def test_neighbours_are_those_that_scikit_learn_finds() -> None:
    generator = torch.Generator().manual_seed(2)
    original = torch.randn(300, 8, generator=generator)
    coded = original + 0.3 * torch.randn(300, 8, generator=generator)
    rows = torch.tensor([5, 0, 299])
    found = find_neighbours(original, coded, rows, neighbours=4)
    search = NearestNeighbors(n_neighbors=5, metric="cosine").fit(original.numpy())
    distances, expected = search.kneighbors(original[rows].numpy())
    assert found.before.tolist() == expected[:, 1:].tolist()
    np.testing.assert_allclose(found.before_cosines, 1 - distances[:, 1:], atol=1e-6)


def test_a_search_that_would_take_long_is_among_the_rows_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The function of that name hides the module.
    monkeypatch.setattr(sys.modules["smalti.analysis.neighbours"], "MOST_WORK", 1)
    original = torch.tensor([[1.0, 0], [1, 0.1], [0.9, 0.2], [0, 1], [0.1, 1], [1, 0.05]])
    found = find_neighbours(original, original, torch.tensor([3, 0, 2, 4]), neighbours=2)
    # Rows 1 and 5 are nearest to row 0, and were not asked for.
    assert found.before.tolist() == [[4, 2], [2, 4], [0, 4], [3, 2]]
    assert found.among == 4


def test_overlap_and_examples_are_counted_by_hand() -> None:
    cosines = torch.full((2, 3), 0.5)
    before = torch.tensor([[1, 2, 3], [0, 2, 3]])
    after = torch.tensor([[3, 1, 4], [0, 2, 3]])
    found = Neighbours(torch.tensor([0, 1]), before, after, cosines, cosines + 0.1, 5)
    told = neighbours(found, list("abcde"), examples=[0, 4])
    assert told.numbers["mean_overlap"] == pytest.approx((2 / 3 + 1) / 2)
    assert told.numbers["rows_by_neighbours_kept"] == [0, 0, 1, 1]
    assert told.numbers["nearest_kept"] == 0.5
    assert told.figures[1].as_dict()["rows"] == [["a", 2, "b c d", "d b e*"]]
    assert "0.100 closer" in told.caption
    assert json.loads(json.dumps(told.as_dict()))["name"] == "neighbours"


def test_tables_without_enough_rows_or_of_two_shapes_are_refused() -> None:
    with pytest.raises(DataError, match="more than 10 rows"):
        find_neighbours(torch.ones(5, 2), torch.ones(5, 2), torch.arange(5))
    with pytest.raises(ShapeError, match="one shape"):
        find_neighbours(torch.ones(5, 2), torch.ones(4, 2), torch.arange(4))


def test_tiers_hold_every_row_once_and_decode_to_it() -> None:
    generator = torch.Generator().manual_seed(3)
    original = torch.randn(400, 24, generator=generator)
    counts = torch.arange(400, 0, -1)
    method = build_compressor(
        "turned",
        rest={
            "compressor": "partial",
            "keep": 30,
            "kept": "int8",
            "rest": {
                "compressor": "partial",
                "keep": 100,
                "kept": {"compressor": "product", "num_codebooks": 8, "codebook_size": 16},
                "rest": {"compressor": "product", "num_codebooks": 4, "codebook_size": 16},
            },
        },
    )
    table = method.fit(original, counts=counts)
    found = tiers(table)
    assert [tier.words for tier in found] == [
        "integers of 8 bits",
        "8 codes of 16",
        "4 codes of 16",
    ]
    assert torch.cat([tier.ids for tier in found]).sort().values.tolist() == list(range(400))
    assert found[1].codes().shape == (100, 8)
    told = storage(table, counts).numbers
    assert sum(tier["rows"] for tier in told["tiers"]) == 400
    assert sum(tier["token_share"] for tier in told["tiers"]) == pytest.approx(1)
    assert told["bytes"] == table.size().total
    assert told["times_smaller"] == pytest.approx(4 * 400 * 24 / table.size().total)
    within = found[1]
    assert torch.equal(within.codes()[:5].long(), within.table.take_codes(torch.arange(5)).long())


def test_the_commonest_rows_come_first_and_without_counts_the_first() -> None:
    assert commonest(torch.tensor([1, 5, 5, 0]), 4, 3).tolist() == [1, 2, 0]
    assert commonest(None, 4, 9).tolist() == [0, 1, 2, 3]
    assert math.isclose(float(commonest(None, 2, 1).sum()), 0)
