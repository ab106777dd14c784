"""What is particular to Sparse; the common contract is in tests/contracts."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.manifold._locally_linear import barycenter_weights
from torch import Tensor, nn
from torch.nn import functional

from smalti.embeddings import CompressedEmbedding, Full, Integer, Partial, Sparse, SparseTable
from smalti.embeddings.neighbours import (
    barycentre_weights,
    least_squares_weights,
    nearest_by_cosine,
    units,
)
from smalti.embeddings.sparse import parameters
from smalti.errors import ConfigError


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def beside(
    sources: Tensor, rows: Tensor, kept: CompressedEmbedding | None = None, **settings: Any
) -> SparseTable:
    kept = kept or Full().fit(sources)
    generator = torch.Generator().manual_seed(0)
    return Sparse(**settings).fit_beside(rows, kept, None, generator)


def cosines(one: Tensor, other: Tensor) -> Tensor:
    return functional.cosine_similarity(one.double(), other.double(), dim=-1)


def as_the_paper_says(sources: np.ndarray, rows: np.ndarray, k: int, reg: float) -> np.ndarray:
    """Section 2.2 row by row, in float64."""
    unit_sources = sources / np.linalg.norm(sources, axis=1, keepdims=True)
    made = []
    for row in rows:
        length = np.linalg.norm(row)
        near = unit_sources[np.argsort(-(unit_sources @ row / length), kind="stable")[:k]]
        apart = row / length - near
        gram = apart @ apart.T
        weights = np.linalg.solve(gram + reg * np.trace(gram) * np.eye(k), np.ones(k))
        total = (weights / weights.sum()) @ near
        made.append(length * total / np.linalg.norm(total))
    return np.stack(made)


class Pair(nn.Module):
    """Owns both tables, as a partial table does."""

    def __init__(self, kept: CompressedEmbedding, rest: SparseTable) -> None:
        super().__init__()
        self.kept, self.rest = kept, rest


@pytest.mark.parametrize("neighbours", [1, 2, 5])
def test_vectors_are_those_of_the_papers_formulas(neighbours: int) -> None:
    sources, rows = normal(60, 12), normal(40, 12, seed=1)
    table = beside(sources, rows, neighbours=neighbours)
    expected = as_the_paper_says(sources.double().numpy(), rows.double().numpy(), neighbours, 1e-3)
    np.testing.assert_allclose(table.dense().numpy(), expected, atol=2e-5)


@pytest.mark.parametrize("regularisation", [1e-3, 1e-1])
@pytest.mark.parametrize("neighbours", [1, 2, 5, 20])
def test_weights_are_those_of_scikit_learn(neighbours: int, regularisation: float) -> None:
    sources, rows = units(normal(200, 16)), units(normal(300, 16, seed=1))
    rows[0] = sources[3]
    sources[5] = sources[4]
    ids = nearest_by_cosine(rows, sources, neighbours)
    ours = barycentre_weights(rows, sources, ids, regularisation)
    theirs = barycenter_weights(
        rows.double().numpy(), sources.double().numpy(), ids.numpy(), reg=regularisation
    )
    np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-4)


def test_weights_without_a_constraint_are_least_squares() -> None:
    sources, rows = units(normal(50, 16)), units(normal(20, 16, seed=1))
    ids = nearest_by_cosine(rows, sources, 4)
    ours = least_squares_weights(rows, sources, ids)
    for row, near, weights in zip(rows, sources[ids], ours, strict=True):
        expected = np.linalg.lstsq(near.double().numpy().T, row.double().numpy(), rcond=None)[0]
        np.testing.assert_allclose(weights.numpy(), expected, atol=1e-4)


def test_without_a_constraint_no_cosine_is_lower() -> None:
    sources, rows = normal(100, 16), normal(200, 16, seed=1)
    rows[:20] = sources[:20] + 0.01 * normal(20, 16, seed=2)
    free = cosines(beside(sources, rows, constraint="none").dense(), rows)
    bound = cosines(beside(sources, rows, constraint="sum-to-one").dense(), rows)
    assert (free >= bound - 1e-6).all()
    assert free.mean() > bound.mean()


def brute_force(queries: Tensor, sources: Tensor, count: int) -> np.ndarray:
    """The best cosines in float64, by sorting all of them."""
    one, other = queries.double().numpy(), sources.double().numpy()
    one = one / np.linalg.norm(one, axis=1, keepdims=True)
    other = other / np.linalg.norm(other, axis=1, keepdims=True)
    return -np.sort(-(one @ other.T), axis=1)[:, :count]


@pytest.mark.parametrize("case", ["spread", "close", "equal", "few"])
def test_neighbours_are_exact(case: str) -> None:
    queries, sources = normal(200, 32, seed=1), normal(500, 32)
    if case == "close":
        # Closer together than float32 can tell.
        sources[100:200] = sources[100] * (1 + 1e-7 * normal(100, 1, seed=2))
        sources[100:200, 0] += 1e-7 * normal(100, seed=3)
        queries[:50] = sources[100] + 0.1 * normal(50, 32, seed=4)
    if case == "equal":
        sources[100:200] = sources[100].clone()
        queries[:50] = sources[100] + 0.1 * normal(50, 32, seed=4)
    if case == "few":
        sources = sources[:5]
    ids = nearest_by_cosine(queries, sources, 5)
    assert all(len(set(row)) == 5 for row in ids.tolist())
    found = functional.cosine_similarity(
        queries.double().unsqueeze(1), sources.double()[ids], dim=-1, eps=0.0
    )
    np.testing.assert_allclose(found.numpy(), brute_force(queries, sources, 5), atol=1e-14, rtol=0)


def test_equally_near_sources_are_taken_in_order() -> None:
    sources = torch.eye(4)[[0, 1, 1, 1, 2, 3]]
    assert nearest_by_cosine(torch.eye(4)[[1]], sources, 3).tolist() == [[1, 2, 3]]


def test_lengths_are_kept() -> None:
    rows = normal(50, 12, seed=1) * torch.logspace(-3, 3, 50).unsqueeze(-1)
    lengths = beside(normal(60, 12), rows).dense().norm(dim=1)
    torch.testing.assert_close(lengths, rows.norm(dim=1), rtol=1e-5, atol=0)


def test_a_zero_row_becomes_zeros() -> None:
    rows = normal(5, 12, seed=1)
    rows[2] = 0.0
    dense = beside(normal(30, 12), rows).dense()
    assert dense[2].eq(0).all()
    assert dense[[0, 1, 3, 4]].norm(dim=1).gt(0).all()


def test_a_row_that_is_kept_elsewhere_comes_back_almost_as_it_was() -> None:
    sources = normal(60, 12)
    table = beside(sources, 3.0 * sources[:10])
    assert (cosines(table.dense(), sources[:10]) > 0.999).all()
    table = beside(sources, 3.0 * sources[:10], constraint="none")
    torch.testing.assert_close(table.dense(), 3.0 * sources[:10], atol=1e-3, rtol=0)


def test_neighbours_that_cancel_leave_the_nearest() -> None:
    # By hand: both weights are 1/2 and the sum is zero; the first of two equally near stands in.
    table = beside(
        torch.tensor([[2.0, 0.0], [-5.0, 0.0]]), torch.tensor([[0.0, 3.0]]), neighbours=2
    )
    torch.testing.assert_close(table.dense(), torch.tensor([[3.0, 0.0]]))


@pytest.mark.parametrize("constraint", ["sum-to-one", "none"])
def test_equal_zero_and_tiny_kept_rows_do_no_harm(constraint: str) -> None:
    sources = normal(20, 8)
    sources[1:6] = sources[0].clone()
    sources[7] = 0.0
    sources[8] *= 1e-23
    rows = normal(30, 8, seed=1)
    rows[0], rows[1] = sources[0], 1e23 * sources[8]
    table = beside(sources, rows, constraint=constraint, precision="float16")
    assert table.dense().isfinite().all()
    torch.testing.assert_close(table.dense().norm(dim=1), rows.norm(dim=1), rtol=1e-2, atol=0)
    assert beside(torch.zeros(20, 8), rows, constraint=constraint).dense().eq(0).all()


def test_more_neighbours_than_kept_rows_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"5 neighbours.*there are 4"):
        beside(normal(4, 8), normal(10, 8))


def test_it_needs_counts_when_it_chooses_what_to_keep() -> None:
    with pytest.raises(ConfigError, match="pass counts="):
        Sparse().fit(normal(20, 8))


def test_by_itself_it_keeps_every_row_that_occurs() -> None:
    table = normal(50, 8)
    counts = torch.zeros(50)
    counts[10:40] = 1.0
    made = Sparse(neighbours=2).fit(table, counts=counts, special=[0])
    known = [0, *range(10, 40)]
    assert torch.equal(made.dense()[known], table[known])
    expected = as_the_paper_says(
        table[known].double().numpy(), table[40:].double().numpy(), 2, 1e-3
    )
    np.testing.assert_allclose(made.dense()[40:].numpy(), expected, atol=2e-5)


@pytest.mark.parametrize("precision", ["float32", "float16"])
@pytest.mark.parametrize("sources", [5, 64, 300])
def test_only_its_own_numbers_are_saved_and_ids_take_the_bits_they_need(
    sources: int, precision: str
) -> None:
    rows, neighbours = 30, 3
    table = beside(
        normal(sources, 8), normal(rows, 8, seed=1), neighbours=neighbours, precision=precision
    )
    assert set(table.state_dict()) == {"codes", "weights", "lengths"}
    ids = math.ceil(rows * neighbours * math.ceil(math.log2(sources)) / 8)
    number = 4 if precision == "float32" else 2
    assert table.size().total == ids + rows * (neighbours + 1) * number


def test_numbers_are_counted_as_in_the_paper() -> None:
    # By hand: 2 rows of 4 numbers; 3 rows of an id, a weight and a length.
    assert parameters(kept_rows=2, rest_rows=3, dim=4, neighbours=1) == 17
    # The paper's original table, all of it kept.
    assert parameters(kept_rows=30_522, rest_rows=0, dim=768, neighbours=5) == 23_440_896


def test_sources_are_the_kept_rows_as_they_are_decoded() -> None:
    sources, rows = normal(60, 12), normal(20, 12, seed=1)
    kept = Integer(bits=3).fit(sources)
    table = beside(sources, rows, kept)
    expected = as_the_paper_says(kept.dense().double().numpy(), rows.double().numpy(), 5, 1e-3)
    np.testing.assert_allclose(table.dense().numpy(), expected, atol=2e-5)


@pytest.mark.parametrize("kept", [Full("float32"), Full("float16"), Integer(bits=8)], ids=repr)
def test_scores_are_products_with_the_rows(kept: Full | Integer) -> None:
    sources, hidden = normal(60, 12), normal(7, 12, seed=2)
    table = beside(sources, normal(20, 12, seed=1), kept.fit(sources))
    torch.testing.assert_close(table.logits(hidden), hidden @ table.dense().T, atol=1e-4, rtol=0)
    scores = table.score_beside(hidden @ table.kept.dense().T)
    torch.testing.assert_close(scores, hidden @ table.dense().T, atol=1e-4, rtol=0)


def test_an_error_reaches_weights_lengths_and_kept_rows() -> None:
    table = beside(normal(60, 12), normal(20, 12, seed=1))
    table(torch.arange(20)).square().sum().backward()
    for tensor in (table.weights, table.lengths, table.kept.vectors):
        assert tensor.grad is not None
        assert tensor.grad.abs().sum() > 0


def test_a_table_that_is_not_attached_says_so() -> None:
    table = SparseTable(rows=10, dim=8, sources=6, neighbours=2)
    with pytest.raises(ConfigError, match="attach"):
        table(torch.tensor([1]))
    with pytest.raises(ConfigError, match="6 rows of width 8"):
        table.attach(Full().fit(normal(7, 8)))


@pytest.mark.parametrize("way", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_reads_the_kept_rows_of_the_copy(way: Any) -> None:
    kept = Full().fit(normal(60, 12))
    pair = Pair(kept, beside(kept.dense(), normal(20, 12, seed=1), kept))
    twin = way(pair)
    assert twin.rest.kept is twin.kept
    assert twin.rest.kept is not pair.kept
    assert [name for name in twin.state_dict() if name.startswith("rest.")] == [
        "rest.weights",
        "rest.lengths",
        "rest.codes",
    ]


def test_fewer_kept_rows_cost_cosine_and_more_neighbours_bring_it() -> None:
    """On rows around a few centres, as tokens lie around meanings."""
    centres = normal(30, 24)
    table = centres[torch.arange(600) % 30] + 0.4 * normal(600, 24, seed=1)
    counts = torch.arange(600, 0, -1)
    means = [
        cosines(
            Partial(keep=keep, rest=Sparse(neighbours=k)).fit(table, counts=counts).dense()[300:],
            table[300:],
        ).mean()
        for keep, k in ((300, 5), (300, 2), (300, 1), (60, 1))
    ]
    assert means == sorted(means, reverse=True)


@pytest.mark.parametrize(
    "bad",
    [
        {"neighbours": 0},
        {"constraint": "convex"},
        {"regularisation": 0.0},
        {"precision": "int8"},
    ],
)
def test_impossible_settings_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Sparse(**bad)
