"""What is particular to Turned; the common contract is in tests/contracts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from smalti.embeddings import Partial, Product, Turned, TurnedTable, build_compressor
from smalti.embeddings.turned import turn_of
from smalti.errors import ConfigError, DataError, ShapeError

ROWS, DIM = 400, 24
PRODUCT = {"compressor": "product", "num_codebooks": 6, "codebook_size": 16}


def rows_and_metric(seed: int = 0) -> tuple[Tensor, Tensor]:
    """Correlated rows, and a metric with dear and cheap directions across the axes."""
    generator = torch.Generator().manual_seed(seed)
    mixing = torch.randn(DIM, DIM, generator=generator) * torch.logspace(0, -1, DIM)
    rows = torch.randn(ROWS, DIM, generator=generator) @ mixing.T
    basis = torch.linalg.qr(torch.randn(DIM, DIM, generator=generator)).Q
    metric = (basis * torch.logspace(0, -3, DIM)) @ basis.T
    return rows, metric


def cost(made: Tensor, rows: Tensor, metric: Tensor) -> float:
    errors = (made - rows).double().numpy()
    return float(np.einsum("nd,de,ne->n", errors, metric.double().numpy(), errors).mean())


def test_after_turning_the_squared_error_is_what_the_metric_says() -> None:
    rows, metric = rows_and_metric()
    turn = turn_of(rows, torch.ones(ROWS), metric, floor=1e-6)
    errors = torch.randn(50, DIM, generator=torch.Generator().manual_seed(1))
    squared = (errors @ turn.there).square().sum(dim=1).numpy()
    said = np.einsum("nd,de,ne->n", errors.numpy(), metric.numpy(), errors.numpy())
    # Up to one scale, which keeps errors at their size on the average.
    np.testing.assert_allclose(squared / said, DIM / float(metric.trace()), rtol=1e-3)


def test_rows_that_are_turned_there_and_back_are_the_rows() -> None:
    rows, metric = rows_and_metric()
    turn = turn_of(rows, torch.ones(ROWS), metric, floor=0.01)
    torch.testing.assert_close(rows @ turn.there @ turn.back, rows, atol=1e-4, rtol=1e-4)


def test_turned_axes_are_uncorrelated_and_parts_are_even() -> None:
    rows, metric = rows_and_metric()
    turned = (rows @ turn_of(rows, torch.ones(ROWS), metric, floor=0.01).there).double().numpy()
    scatter = turned.T @ turned
    np.testing.assert_allclose(
        scatter / np.trace(scatter), np.diag(np.diag(scatter)) / np.trace(scatter), atol=1e-5
    )
    # Four parts of six axes: their products of variances differ less than those of
    # neighbouring axes in the order of their variances.
    logs = np.log(np.diag(scatter))
    even = logs.reshape(4, 6).sum(axis=1)
    sorted_parts = np.sort(logs).reshape(4, 6).sum(axis=1)
    assert np.ptp(even) < 0.2 * np.ptp(sorted_parts)


def test_without_a_metric_rows_are_only_rotated() -> None:
    rows, _ = rows_and_metric()
    turn = turn_of(rows, torch.ones(ROWS), None, floor=0.01)
    torch.testing.assert_close(turn.there @ turn.there.T, torch.eye(DIM), atol=1e-4, rtol=0)
    torch.testing.assert_close(turn.back, turn.there.T, atol=1e-4, rtol=0)


def test_what_costs_much_is_coded_closer() -> None:
    rows, metric = rows_and_metric()
    plain = cost(Product(6, 16).fit(rows, metric=metric).dense(), rows, metric)
    rotated = cost(Turned(Product(6, 16)).fit(rows).dense(), rows, metric)
    turned = cost(Turned(Product(6, 16)).fit(rows, metric=metric).dense(), rows, metric)
    assert turned < 0.3 * plain
    assert turned < 0.65 * rotated


def test_a_floor_of_one_knows_no_cheap_directions() -> None:
    rows, metric = rows_and_metric()
    flat = Turned(PRODUCT, floor=1.0).fit(rows, metric=metric)
    rotated = Turned(PRODUCT).fit(rows)
    torch.testing.assert_close(flat.dense(), rotated.dense(), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("keep", [10, 100])
def test_tiers_inside_and_turned_rests_heed_the_metric_too(keep: int) -> None:
    rows, metric = rows_and_metric()
    counts = torch.arange(ROWS, 0, -1)
    inside = Turned(Partial(keep, "int8", PRODUCT))
    outside = Partial(keep, "float32", Turned(PRODUCT))
    for method in (inside, outside):
        assert method.heeds_metric
        costs = [
            cost(method.fit(rows, counts=counts, metric=given).dense(), rows, metric)
            for given in (metric, None)
        ]
        assert costs[0] < 0.6 * costs[1]
    assert not Partial(keep, "int8", PRODUCT).heeds_metric


def test_the_matrix_costs_a_byte_a_number_and_a_step_a_row() -> None:
    rows, _ = rows_and_metric()
    inner, turned = build_compressor(PRODUCT).fit(rows), Turned(PRODUCT).fit(rows)
    assert turned.size().total - inner.size().total == DIM * DIM + 4 * DIM
    assert turned.size().codebooks - inner.size().codebooks == DIM * DIM + 4 * DIM


@pytest.mark.parametrize("dim", [1, 5, 7, 12])
def test_any_width_can_be_turned(dim: int) -> None:
    rows = torch.randn(50, dim, generator=torch.Generator().manual_seed(0))
    table = Turned({"compressor": "integer", "bits": 8}).fit(rows, metric=torch.eye(dim))
    torch.testing.assert_close(table.dense(), rows, atol=0.1, rtol=0)


def test_what_is_no_metric_is_refused() -> None:
    rows, metric = rows_and_metric()
    for wrong in (metric[:-1], metric.long(), torch.ones(DIM)):
        with pytest.raises(ShapeError, match="metric"):
            Turned(PRODUCT).fit(rows, metric=wrong)
    for wrong in (metric * torch.nan, torch.zeros(DIM, DIM)):
        with pytest.raises(DataError, match="metric"):
            Turned(PRODUCT).fit(rows, metric=wrong)


@pytest.mark.parametrize("bad", [{"floor": 0.0}, {"floor": 1.5}, {"power": -1}, {"rest": "no"}])
def test_impossible_settings_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Turned(**bad)


def test_a_table_of_another_shape_can_not_be_turned() -> None:
    inner = build_compressor(PRODUCT).outline(ROWS, DIM)
    with pytest.raises(ConfigError, match="can't be turned"):
        TurnedTable(ROWS + 1, DIM, inner)
