"""What is particular to LowRank; the common contract is in tests/contracts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from torch import Tensor

from smalti.embeddings import LowRank
from smalti.errors import ConfigError, DataError


def correlated(rows: int = 200, dim: int = 12) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    mixing = torch.randn(dim, dim, generator=generator) * torch.logspace(0, -1, dim)
    return torch.randn(rows, dim, generator=generator) @ mixing.T + 2.0


@pytest.mark.parametrize("rank", [1, 4, 12])
def test_vectors_are_those_of_principal_components(rank: int) -> None:
    table = correlated()
    ours = LowRank(rank, precision="float32").fit(table).dense()
    pca = PCA(rank).fit(table.double().numpy())
    expected = pca.inverse_transform(pca.transform(table.double().numpy()))
    np.testing.assert_allclose(ours.numpy(), expected, atol=1e-4)


def test_uncentred_vectors_are_those_of_the_largest_singular_values() -> None:
    table = correlated()
    ours = LowRank(3, centred=False, precision="float32").fit(table).dense()
    left, values, right = np.linalg.svd(table.double().numpy(), full_matrices=False)
    np.testing.assert_allclose(ours.numpy(), (left[:, :3] * values[:3]) @ right[:3], atol=1e-4)


def test_a_count_is_worth_as_many_equal_rows() -> None:
    table, counts = correlated(), torch.arange(200) % 7
    ours = LowRank(3, precision="float32", power=1.0).fit(table, counts=counts).dense()
    # A row weighs half an occurrence more than it has, so twice each count and one.
    repeated = table.double().numpy().repeat(2 * counts.numpy() + 1, axis=0)
    pca = PCA(3).fit(repeated)
    expected = pca.inverse_transform(pca.transform(table.double().numpy()))
    np.testing.assert_allclose(ours.numpy(), expected, atol=1e-4)


def test_counts_without_power_change_nothing() -> None:
    table, counts = correlated(), torch.arange(200)
    weighted = LowRank(3, power=0.0).fit(table, counts=counts)
    torch.testing.assert_close(weighted.dense(), LowRank(3).fit(table).dense())


def test_half_precision_costs_little() -> None:
    table = correlated()
    fine = LowRank(4, precision="float32").fit(table).dense()
    torch.testing.assert_close(LowRank(4).fit(table).dense(), fine, atol=2e-2, rtol=0)


@pytest.mark.parametrize(("precision", "number"), [("float16", 2), ("float32", 4)])
@pytest.mark.parametrize("centred", [True, False])
def test_the_size_is_coordinates_and_basis(centred: bool, precision: str, number: int) -> None:
    size = LowRank(4, centred=centred, precision=precision).fit(correlated()).size()
    assert size.codes == 200 * 4 * number
    assert size.codebooks == (4 + centred) * 12 * number
    assert size.total == size.codes + size.codebooks


def test_an_untrained_table_learns_a_table_of_its_rank() -> None:
    torch.manual_seed(0)
    goal = LowRank(2, precision="float32").fit(correlated(40)).dense()
    table = LowRank(2, precision="float32").start(40, 12)
    assert table.dense().std() == pytest.approx(1.0, abs=0.4)
    optimizer = torch.optim.Adam(table.parameters(), lr=0.05)
    for _ in range(400):
        loss = (table(torch.arange(40)) - goal).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.01 * goal.var()


def test_gradients_are_those_of_a_matrix_product() -> None:
    table = LowRank(4, precision="float32").fit(correlated())
    ids, back = torch.tensor([3, 3, 17]), torch.ones(3, 12)
    table(ids).backward(back)
    coordinates = table.coordinates.detach()
    assert table.basis.grad is not None
    assert table.coordinates.grad is not None
    torch.testing.assert_close(table.basis.grad, coordinates[ids].T @ back)
    expected = torch.zeros_like(coordinates).index_add_(0, ids, back @ table.basis.detach().T)
    torch.testing.assert_close(table.coordinates.grad, expected)


def test_more_directions_than_columns_are_refused() -> None:
    with pytest.raises(ConfigError, match="rank must be at most the width 12, got 13"):
        LowRank(13).fit(correlated())


def test_numbers_beyond_float16_are_refused() -> None:
    with pytest.raises(DataError, match="precision='float32'"):
        LowRank(2).fit(1e6 * correlated())
    assert LowRank(2, precision="float32").fit(1e6 * correlated()).dense().isfinite().all()
