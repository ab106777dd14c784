"""What is particular to tables that learn their codes with a task."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from torch import nn
from torch.nn import functional

from smalti.embeddings.base import build_table
from smalti.embeddings.coded import CodedTable
from smalti.embeddings.differentiable import (
    Differentiable,
    DifferentiableEmbedding,
    compression_ratio,
    learning_loss,
)
from smalti.errors import ConfigError

CHOICES = ["softmax", "centroid"]
NORMS = ["none", "batch", "batch_per_group"]


def trained(rows: int = 300, steps: int = 5, **settings: Any) -> DifferentiableEmbedding:
    """A table after a few steps of a task that is as good as random."""
    torch.manual_seed(0)
    settings = {"num_codebooks": 4, "codebook_size": 8, **settings}
    table = Differentiable(**settings).start(rows, 16)
    target = torch.randn(rows, 16)
    optimizer = torch.optim.Adam(table.parameters(), lr=0.01)
    for _ in range(steps):
        ids = torch.randint(rows, (64,))
        optimizer.zero_grad()
        (functional.mse_loss(table(ids), target[ids]) + learning_loss(table)).backward()
        optimizer.step()
    return table


def best_codes(table: DifferentiableEmbedding) -> tuple[np.ndarray, np.ndarray]:
    """Codes by normalised scores in float64, and how far each is ahead of the second."""
    state = {name: tensor.double().numpy() for name, tensor in table.state_dict().items()}
    queries = state["queries"].reshape(table.rows, table.num_codebooks, 1, -1)
    keys = state["quantizer.keys"][None]
    if table.choice == "softmax":
        scores = (queries * keys).sum(-1)
    else:
        scores = -((queries - keys) ** 2).sum(-1)
    if table.distance_norm != "none":
        mean, variance = state["quantizer.running_mean"], state["quantizer.running_variance"]
        scores = (scores - mean) / np.sqrt(variance + 1e-3)
    ordered = np.sort(scores, axis=-1)
    return scores.argmax(-1), ordered[..., -1] - ordered[..., -2]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        # Of methods by hand: 32 n d / (n D log2 K + 32 K d), shared: 32 K d / D.
        ({"rows": 30522, "dim": 768, "num_codebooks": 128, "codebook_size": 32}, 36.9),
        ({"rows": 32000, "dim": 512, "num_codebooks": 32, "codebook_size": 32}, 92.9),
        (
            {"rows": 32000, "dim": 512, "num_codebooks": 32, "codebook_size": 32, "shared": True},
            102.1,
        ),
    ],
)
def test_the_compression_ratio_is_the_papers(settings: dict[str, Any], expected: float) -> None:
    ratio = compression_ratio(**settings)
    assert ratio.ideal == pytest.approx(expected, abs=0.05)
    assert ratio.packed == ratio.ideal


def test_a_size_that_is_no_power_of_two_has_two_ratios() -> None:
    ratio = compression_ratio(1000, 8, num_codebooks=4, codebook_size=5)
    # 256,000 bits over 4,000 codes of 2.3219 or 3 bits and 1,280 bits of codewords.
    assert ratio.ideal == pytest.approx(256_000 / (4_000 * 2.321928 + 1_280))
    assert ratio.packed == pytest.approx(256_000 / (12_000 + 1_280))


@pytest.mark.parametrize("shared", [False, True])
def test_the_exported_table_has_the_bytes_of_the_packed_ratio(shared: bool) -> None:
    table = trained(rows=400, codebook_size=6, shared=shared).export()
    ratio = compression_ratio(400, 16, 4, 6, shared)
    assert 4 * 400 * 16 / table.size().total == pytest.approx(ratio.packed)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("choice", CHOICES)
def test_exported_codes_have_the_best_scores_under_the_running_statistics(
    choice: str, norm: str
) -> None:
    table = trained(choice=choice, distance_norm=norm)
    codes, lead = best_codes(table)
    exported = table.export()
    found = exported.take_codes(torch.arange(300)).numpy()
    clear = lead > 1e-5
    assert clear.mean() > 0.99
    assert (found == codes)[clear].all()
    values = table.state_dict()[f"quantizer.{'values' if choice == 'softmax' else 'keys'}"]
    for row in range(0, 300, 37):
        pieces = [values[group, found[row, group]] for group in range(4)]
        assert torch.equal(exported(torch.tensor(row)), torch.cat(pieces))


@pytest.mark.parametrize("precision", ["float32", "float16"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("choice", CHOICES)
def test_the_exported_table_equals_the_trained_one_bit_for_bit(
    choice: str, norm: str, shared: bool, precision: str
) -> None:
    table = trained(choice=choice, distance_norm=norm, shared=shared, precision=precision).eval()
    exported = table.export()
    assert isinstance(exported, CodedTable)
    assert torch.equal(table.dense(), exported.dense())
    for ids in [torch.arange(300), *torch.randperm(300).split(7), torch.tensor([[3, 3], [9, 0]])]:
        assert torch.equal(table(ids), exported(ids))


def test_half_precision_rounds_the_values_and_nothing_else() -> None:
    table = trained(precision="float16").eval()
    full = copy.deepcopy(table)
    full.precision = "float32"
    assert torch.equal(table.codes(), full.codes())
    assert torch.equal(table.dense(), full.dense().half().float())
    assert table.export().size().codebooks * 2 == full.export().size().codebooks


@pytest.mark.parametrize("choice", CHOICES)
def test_evaluation_changes_nothing(choice: str) -> None:
    table = trained(choice=choice).eval()
    before = copy.deepcopy(table.state_dict())
    first = table(torch.arange(300))
    table.logits(torch.randn(3, 16))
    table.export()
    assert torch.equal(table(torch.arange(300)), first)
    assert float(table.loss) == 0
    for name, tensor in table.state_dict().items():
        assert torch.equal(tensor, before[name]), name


@pytest.mark.parametrize("choice", CHOICES)
def test_evaluation_sees_every_change_of_a_parameter(choice: str) -> None:
    table = trained(choice=choice, distance_norm="none").eval()
    other = trained(choice=choice, distance_norm="none", steps=60).eval()
    table(torch.arange(300))
    table.load_state_dict(other.state_dict())
    assert torch.equal(table.dense(), other.dense())
    with torch.no_grad():
        table.queries.copy_(table.queries.flip(0))
    assert torch.equal(table.codes(), other.codes().flip(0))


@pytest.mark.parametrize("choice", CHOICES)
def test_the_whole_table_is_asked_for_in_training_without_learning_from_it(choice: str) -> None:
    table = trained(choice=choice)
    before = copy.deepcopy(table.state_dict())
    dense = table.dense()
    assert torch.equal(table.eval().dense(), dense)
    for name, tensor in table.state_dict().items():
        assert torch.equal(tensor, before[name]), name


def test_softmax_has_no_loss_of_its_own_and_centroids_attract() -> None:
    softmax, centroid = trained(choice="softmax"), trained(choice="centroid")
    ids = torch.randint(300, (50,))
    softmax(ids)
    vectors = centroid(ids)
    # By hand: the mean squared distance of queries and their centroids.
    expected = float(((centroid.queries[ids] - vectors) ** 2).mean().detach())
    assert float(softmax.loss) == 0
    assert float(centroid.loss.detach()) == pytest.approx(expected, rel=1e-5)
    both = nn.ModuleList([softmax, centroid, nn.Linear(2, 2)])
    assert float(learning_loss(both).detach()) == pytest.approx(expected, rel=1e-5)
    assert float(learning_loss(nn.Linear(2, 2))) == 0


@pytest.mark.parametrize("choice", CHOICES)
def test_every_parameter_learns(choice: str) -> None:
    table = trained(choice=choice, steps=0)
    (table(torch.arange(300)).square().sum() + learning_loss(table)).backward()
    for name, parameter in table.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("choice", CHOICES)
def test_a_table_learns_a_task_and_keeps_it_when_exported(choice: str) -> None:
    torch.manual_seed(0)
    labels = torch.randint(4, (200,))
    model = nn.Sequential(Differentiable(choice, 8, 8).start(200, 16), nn.Linear(16, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(250):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(torch.arange(200)), labels)
        (loss + learning_loss(model)).backward()
        optimizer.step()
    model[0] = model.eval()[0].export()
    right = (model(torch.arange(200)).argmax(1) == labels).float().mean()
    assert right > 0.9


@pytest.mark.parametrize("choice", CHOICES)
def test_a_tied_table_learns_through_its_scores(choice: str) -> None:
    torch.manual_seed(0)
    table = Differentiable(choice, 8, 16, distance_norm="none").start(100, 16)
    follows = torch.randperm(100)
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 16))
    optimizer = torch.optim.Adam([*table.parameters(), *model.parameters()], lr=0.01)

    def loss() -> torch.Tensor:
        return functional.cross_entropy(table.logits(model(table(torch.arange(100)))), follows)

    first = float(loss().detach())
    for _ in range(150):
        optimizer.zero_grad()
        (loss() + table.loss).backward()
        optimizer.step()
    table.eval()
    last = float(loss().detach())
    assert last < 0.6 * first
    hidden = torch.randn(5, 16)
    torch.testing.assert_close(table.logits(hidden), hidden @ table.export().dense().T)


@pytest.mark.parametrize("choice", CHOICES)
def test_a_table_can_be_copied_and_built_anew_after_a_step(choice: str) -> None:
    table = trained(choice=choice)
    copied = copy.deepcopy(table)
    built = build_table(table.spec())
    built.load_state_dict(table.state_dict())
    assert built.spec() == table.spec()
    for other in (copied, built):
        assert torch.equal(other.eval().dense(), table.eval().dense())


def test_outputs_follow_the_type_of_the_model_and_codes_stay() -> None:
    table = trained(choice="centroid", distance_norm="none").eval()
    exported = table.export()
    made = table.to(torch.bfloat16).export()
    assert table(torch.tensor([1])).dtype == made(torch.tensor([1])).dtype == torch.bfloat16
    assert made.size().codes == exported.size().codes


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("choice", CHOICES)
def test_a_finished_table_is_coded_as_well_as_by_k_means(choice: str, shared: bool) -> None:
    table = torch.randn(500, 8, generator=torch.Generator().manual_seed(3))
    parts = table.view(500, 4, 2).numpy()
    if shared:
        means = KMeans(8, n_init=1, random_state=0).fit(parts.reshape(-1, 2))
        expected = means.inertia_ / table.numel()
    else:
        fits = [KMeans(8, n_init=1, random_state=0).fit(parts[:, part]) for part in range(4)]
        expected = sum(fit.inertia_ for fit in fits) / table.numel()
    compressor = Differentiable(choice, 4, 8, shared=shared, steps=100)
    found = float((compressor.fit(table).dense() - table).square().mean())
    assert found < 1.05 * expected


@pytest.mark.parametrize("choice", CHOICES)
def test_fitting_is_repeatable_and_leaves_the_global_generator_alone(choice: str) -> None:
    table = torch.randn(200, 8)
    compressor = Differentiable(choice, 4, 4, steps=20)
    torch.manual_seed(5)
    first = compressor.fit(table, generator=torch.Generator().manual_seed(1)).dense()
    after = torch.rand(1)
    torch.manual_seed(5)
    assert torch.equal(after, torch.rand(1))
    torch.manual_seed(6)
    again = compressor.fit(table, generator=torch.Generator().manual_seed(1)).dense()
    assert torch.equal(first, again)


@pytest.mark.parametrize("choice", CHOICES)
def test_common_rows_are_coded_better_than_rare_ones(choice: str) -> None:
    table = torch.randn(400, 8, generator=torch.Generator().manual_seed(0))
    counts = torch.ones(400)
    counts[:40] = 1000
    compressor = Differentiable(choice, 4, 8, steps=0, power=1.0)
    alike, counted = compressor.fit(table), compressor.fit(table, counts=counts)
    error_of = {"alike": alike.dense()[:40], "counted": counted.dense()[:40]}
    errors = {name: float((rows - table[:40]).square().mean()) for name, rows in error_of.items()}
    assert errors["counted"] < 0.7 * errors["alike"]


@pytest.mark.parametrize(("groups", "size"), [(8, 4), (16, 2), (8, 8)])
def test_the_rank_of_a_table_of_codes_is_bounded_by_its_codewords(groups: int, size: int) -> None:
    # Each group's codes sum to one, so D groups of K have rank D (K - 1) + 1, and not K D.
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(size, (2000, groups), generator=generator)
    values = torch.randn(groups, 1, size, 32 // groups, generator=generator)
    table = CodedTable.holding(codes, values, precision="float32").dense().detach().double()
    assert np.linalg.matrix_rank(table.numpy(), tol=1e-3) == min(32, groups * (size - 1) + 1)


@pytest.mark.parametrize(
    "bad",
    [
        {"choice": "nearest"},
        {"num_codebooks": 5},
        {"num_codebooks": 8},
        {"codebook_size": 1},
        {"distance_norm": "layer"},
        {"precision": "float64"},
    ],
)
def test_impossible_settings_are_refused(bad: dict[str, Any]) -> None:
    settings = {"choice": "softmax", "num_codebooks": 4, "codebook_size": 8, **bad}
    with pytest.raises(ConfigError):
        Differentiable(**settings).start(10, 8)
