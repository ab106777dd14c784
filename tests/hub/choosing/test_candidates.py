"""Compressors worth trying: all within the budget, each the largest of its method."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from smalti.embeddings import build_compressor
from smalti.errors import ConfigError
from smalti.hub.choosing.candidates import (
    SHARES,
    Table,
    ordinary,
    partial,
    plain_candidates,
    sized,
    tiered_candidates,
    turned_candidates,
    widths,
    with_kept,
)

ROWS, DIM, SPECIAL = 900, 24, (0, 1, 2)


@pytest.fixture(scope="module")
def table() -> Table:
    """Rows around centres, used as words are; the last third never occurs."""
    generator = torch.Generator().manual_seed(2)
    centres = torch.randn(30, DIM, generator=generator)
    vectors = centres[torch.arange(ROWS) % 30] + 0.4 * torch.randn(ROWS, DIM, generator=generator)
    counts = torch.cat([(5000 / torch.arange(1, 601)).ceil(), torch.zeros(300)])
    return Table(vectors, counts.double(), SPECIAL, unknown=1)


def bytes_of(table: Table, spec: Any) -> int:
    """What a fitted table takes, by adding up its tensors."""
    return sum(
        tensor.nbytes for tensor in table.fit(build_compressor(spec), 0).state_dict().values()
    )


@pytest.mark.parametrize(
    ("dim", "expected"), [(24, [4, 6, 8, 12]), (32, [4, 8, 16]), (7, []), (8, [4]), (2, [])]
)
def test_parts_divide_the_width_and_have_at_least_two_numbers(
    dim: int, expected: list[int]
) -> None:
    assert widths(dim) == expected


@pytest.mark.parametrize("percent", [3, 12, 15, 25, 50, 90])
def test_plain_candidates_fit_and_are_the_largest_of_their_method(
    table: Table, percent: float
) -> None:
    budget = percent / 100 * 4 * ROWS * DIM
    found = {c.spec()["compressor"]: c.spec() for c in plain_candidates(table, budget)}
    sizes = [table.expected_bytes(build_compressor(spec)) for spec in found.values()]
    assert all(size <= budget for size in sizes)
    bits = [
        bits
        for bits in (2, 3, 4, 5, 6, 8)
        if bytes_of(table, {"compressor": "integer", "bits": bits}) <= budget
    ]
    assert found.get("integer", {}).get("bits") == max(bits, default=None)
    parts = [
        parts
        for parts in (4, 6, 8, 12)
        # Codes of one byte a part, 256 codewords as int8, a step of four bytes a codebook.
        if ROWS * parts + 256 * DIM + 4 * parts <= budget
    ]
    assert found.get("product", {}).get("num_codebooks") == max(parts, default=None)


@pytest.mark.parametrize("percent", [13, 20])
def test_tiers_use_up_the_budget_and_no_more(table: Table, percent: float) -> None:
    budget = percent / 100 * 4 * ROWS * DIM
    found = tiered_candidates(table, budget)
    assert found
    for compressor in found:
        taken = bytes_of(table, compressor)
        assert 0.85 * budget < taken <= budget
        assert taken == table.expected_bytes(compressor)


def test_tiers_need_no_special_rows_and_no_counts_above_zero(table: Table) -> None:
    bare = Table(table.vectors, torch.zeros(ROWS, dtype=torch.float64))
    budget = 0.3 * bare.dense_bytes
    for compressor in tiered_candidates(bare, budget):
        assert bare.expected_bytes(compressor) <= budget


def test_distortion_is_measured_once_and_falls_with_bytes(table: Table) -> None:
    measured = table.storages()
    assert table.storages() is measured
    products = [storage for storage, spec in measured if spec["compressor"] == "product"]
    assert [storage.row_bytes for storage in products] == [4, 6, 8, 12]
    losses = [storage.distortion for storage in products]
    assert losses == sorted(losses, reverse=True)


@pytest.mark.parametrize(
    "method", ["product", "integer", "low_rank", "residual", "partial", "sparse", "unknown"]
)
def test_a_method_is_sized_to_a_budget(table: Table, method: str) -> None:
    budget = 0.6 * table.dense_bytes
    (found,) = sized(table, method, budget, None, None)
    assert 0 < bytes_of(table, found) <= budget
    spec = found.spec()
    assert method in {spec["compressor"], spec.get("rest", {}).get("compressor")}


@pytest.mark.parametrize("method", ["compositional", "differentiable"])
def test_methods_that_learn_are_sized_without_fitting(table: Table, method: str) -> None:
    budget = 0.3 * table.dense_bytes
    (found,) = sized(table, method, budget, None, None)
    assert table.expected_bytes(found) <= budget


def test_kept_rows_count_into_the_size(table: Table) -> None:
    budget = 0.3 * table.dense_bytes
    (found,) = sized(table, "product", budget, 100, "int8")
    spec = found.spec()
    assert (spec["compressor"], spec["keep"], spec["kept"]) == ("partial", 100, "int8")
    assert spec["rest"]["compressor"] == "product"
    assert bytes_of(table, found) <= budget


def test_sparse_keeps_as_many_rows_as_fit(table: Table) -> None:
    budget = 0.5 * table.dense_bytes
    (found,) = sized(table, "sparse", budget, None, None)
    share = found.spec()["keep"]
    larger = [some for some in SHARES if some > share]
    assert larger
    assert bytes_of(table, partial(min(larger), "float32", "sparse")) > budget


def test_a_method_without_sizes_is_refused(table: Table) -> None:
    with pytest.raises(ConfigError, match="give its settings"):
        sized(table, "full", table.dense_bytes, None, None)


def test_nothing_fits_into_nothing(table: Table) -> None:
    assert plain_candidates(table, 10) == []
    assert tiered_candidates(table, 10) == []
    assert sized(table, "product", 10, None, None) == []


@pytest.mark.parametrize("dim", [1, 2, 7, 24, 32, 384, 768, 1024, 4096])
def test_ordinary_codes_divide_every_width(dim: int) -> None:
    parts = ordinary(dim).spec()["num_codebooks"]
    assert dim % parts == 0
    assert dim < 32 or parts == dim // 8


def test_rows_are_kept_beside_a_method_only_where_that_is_asked_for() -> None:
    method = build_compressor("integer")
    assert with_kept(method, None, None) is method
    assert with_kept(method, 10, None).spec() == {
        "compressor": "partial",
        "keep": 10,
        "kept": "float32",
        "rest": {"compressor": "integer", "bits": 8, "group": None},
    }


@pytest.mark.parametrize("percent", [15, 20])
def test_turned_tiers_fit_with_their_matrix_and_need_to_know_the_costs(
    table: Table, percent: float
) -> None:
    budget = percent / 100 * table.dense_bytes
    assert turned_candidates(table, budget) == []
    metric = torch.diag(torch.logspace(0, -2, DIM)).double()
    knowing = Table(table.vectors, table.counts, SPECIAL, 1, measure=lambda: metric)
    found = turned_candidates(knowing, budget)
    assert found
    for compressor in found:
        assert compressor.spec()["compressor"] == "turned"
        assert bytes_of(knowing, compressor.spec()) <= budget


def test_what_errors_cost_is_measured_once_and_only_where_it_matters() -> None:
    generator = torch.Generator().manual_seed(2)
    calls: list[int] = []

    def measure() -> torch.Tensor:
        calls.append(1)
        return torch.eye(DIM, dtype=torch.float64)

    vectors = torch.randn(300, DIM, generator=generator)
    table = Table(vectors, torch.arange(1.0, 301).double(), measure=measure)
    table.fit(build_compressor("integer"), 0)
    assert calls == []
    for _ in range(2):
        table.fit(build_compressor("turned", rest={"compressor": "integer"}), 0)
    assert calls == [1]
