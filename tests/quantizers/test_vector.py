"""What is particular to VectorQuantizer; the common contract is in tests/contracts."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from smalti.errors import ConfigError
from smalti.quantizers import (
    KMeansStart,
    MovingAverage,
    RandomStart,
    Revive,
    VectorQuantizer,
    apply_updates,
    build,
    defer_updates,
    follow,
)
from smalti.quantizers.learning import STATISTICS

CORNERS = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def corners(**settings: Any) -> VectorQuantizer:
    """A quantizer whose codewords are the corners of the unit square."""
    layer = VectorQuantizer(2, 4, **{"start": "random", "dead": "keep", **settings})
    layer.codebook.data.copy_(CORNERS)
    return layer


def test_a_vector_becomes_its_nearest_codeword() -> None:
    x = torch.tensor([[0.1, 0.2], [0.9, 0.1], [0.4, 0.8]])
    out = corners().eval()(x)
    assert out.codes.squeeze(-1).tolist() == [0, 1, 2]
    assert torch.equal(out.vectors, CORNERS[:3])


def test_the_loss_of_gradient_learning_is_attraction_and_commitment() -> None:
    x = torch.tensor([[0.2, 0.0]])
    # By hand: the squared distance is 0.04 over two coordinates, hence a mean of 0.02.
    loss = corners(learning="gradient", beta=0.5)(x).loss
    torch.testing.assert_close(loss, torch.tensor(0.02 + 0.5 * 0.02))


def test_the_loss_of_moving_averages_is_commitment_alone() -> None:
    loss = corners(beta=0.5)(torch.tensor([[0.2, 0.0]])).loss
    torch.testing.assert_close(loss, torch.tensor(0.5 * 0.02))


def test_the_encoder_receives_the_decoder_gradient_unchanged() -> None:
    x = torch.rand(5, 2, requires_grad=True)
    corners()(x).vectors.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, torch.ones(5, 2))


def test_the_commitment_gradient_is_the_scaled_difference() -> None:
    x = torch.tensor([[0.2, 0.1], [0.9, 0.0]], requires_grad=True)
    corners(beta=0.5)(x).loss.backward()
    # d/dx of 0.5 * mean over 4 numbers of (x - corner)^2.
    expected = 0.5 * 2 * (x.detach() - CORNERS[:2]) / 4
    torch.testing.assert_close(x.grad, expected)


def test_only_chosen_codewords_learn_by_gradient() -> None:
    layer = corners(learning="gradient")
    (gradient,) = torch.autograd.grad(layer(torch.tensor([[0.1, 0.2]])).loss, layer.book.codewords)
    assert gradient[0].any(dim=1).tolist() == [True, False, False, False]


def test_the_rotation_gradient_keeps_its_angle_to_the_vector() -> None:
    """Turning x onto the codeword turns the gradient with it: products with x and q agree."""
    layer = corners(gradient="rotation")
    layer.codebook.data.copy_(2 * CORNERS + 1)
    x = torch.tensor([[2.9, 0.8]], requires_grad=True)
    weights = torch.tensor([[0.3, -0.7]])
    out = layer(x)
    (out.vectors * weights).sum().backward()
    assert torch.equal(out.vectors, torch.tensor([[3.0, 1.0]]))
    assert x.grad is not None
    torch.testing.assert_close((x.grad * x).sum(), (weights * out.vectors).sum())
    lengths = out.vectors.norm() / x.detach().norm()
    torch.testing.assert_close(x.grad.norm(), weights.norm() * lengths)


def test_one_full_batch_step_without_memory_is_one_lloyd_step() -> None:
    torch.manual_seed(0)
    x, start = torch.randn(400, 5), torch.randn(12, 5)
    layer = VectorQuantizer(5, 12, decay=0.0, dead="keep", start="random")
    layer.codebook.data.copy_(start)
    layer(x)
    lloyd = KMeans(12, init=start.numpy(), n_init=1, max_iter=1, algorithm="lloyd").fit(x.numpy())
    np.testing.assert_allclose(layer.codebook.numpy(), lloyd.cluster_centers_, atol=1e-5)


def test_the_distortion_never_rises_over_lloyd_steps() -> None:
    torch.manual_seed(0)
    x = torch.randn(1000, 4)
    layer = VectorQuantizer(4, 30, decay=0.0, dead="keep")
    errors = [float(layer(x).metrics["distortion"]) for _ in range(20)]
    assert all(later <= earlier + 1e-6 for earlier, later in itertools.pairwise(errors))


def test_the_lazy_rule_equals_a_weighted_mean_by_hand() -> None:
    layer = corners(decay=0.9)
    layer(torch.tensor([[0.2, 0.0], [0.0, 0.2], [0.9, 0.9]]))
    layer(torch.tensor([[0.4, 0.0]]))
    # Code 0: sums 0.1 * (.2, .2) then 0.9 of it + 0.1 * (.4, 0); counts 0.1 * 2, then alike.
    expected = torch.tensor([0.9 * 0.02 + 0.04, 0.9 * 0.02]) / (0.9 * 0.2 + 0.1)
    torch.testing.assert_close(layer.codebook[0], expected)
    # Code 3 was used once and stays at its only vector; codes 1 and 2 never moved.
    torch.testing.assert_close(layer.codebook[3], torch.tensor([0.9, 0.9]))
    assert torch.equal(layer.codebook[1:3], CORNERS[1:3])


def test_vectors_belong_to_the_codebook_before_the_step() -> None:
    layer = corners(decay=0.0)
    out = layer(torch.tensor([[0.2, 0.1]]))
    assert torch.equal(out.vectors, CORNERS[:1])
    torch.testing.assert_close(layer.codebook[0], torch.tensor([0.2, 0.1]))


@pytest.mark.parametrize("statistics", ["zalando", "tensor2tensor"])
def test_reference_starts_throw_unused_codewords_far_away(statistics: str) -> None:
    layer = VectorQuantizer(
        16, 64, learning=MovingAverage(0.99, statistics), start="random", dead="keep"
    )
    layer(torch.randn(8, 16))
    assert layer.codebook.norm(dim=1).median() > 1e3


def test_the_sonnet_start_puts_unused_codewords_at_the_origin() -> None:
    layer = VectorQuantizer(
        16, 64, learning=MovingAverage(0.99, "sonnet"), start="random", dead="keep"
    )
    layer(torch.randn(8, 16))
    assert int((layer.codebook.norm(dim=1) == 0).sum()) >= 64 - 8


@pytest.mark.parametrize("statistics", STATISTICS)
def test_all_starts_of_the_statistics_settle_on_the_same_means(statistics: str) -> None:
    torch.manual_seed(0)
    x = torch.cat([torch.randn(200, 2) + 8 * (CORNERS[i] - 0.5) for i in range(4)])
    layer = corners(learning=MovingAverage(0.9, statistics))
    layer.codebook.data.copy_(8 * (CORNERS - 0.5))
    layer.book.sums.copy_(layer.book.codewords if statistics != "lazy" else 0 * layer.book.sums)
    for _ in range(300):
        layer(x)
    means = torch.stack([part.mean(0) for part in x.split(200)])
    torch.testing.assert_close(layer.codebook, means, atol=0.02, rtol=0)


def test_codewords_start_on_vectors_of_the_first_batch() -> None:
    x = torch.randn(100, 3)
    layer = VectorQuantizer(3, 20, dead="keep")
    layer.start_from(x)
    assert all(any(torch.equal(codeword, row) for row in x) for codeword in layer.codebook)
    assert len(layer.codebook.unique(dim=0)) == 20


def test_too_few_vectors_give_jittered_copies() -> None:
    layer = VectorQuantizer(3, 20)
    layer.start_from(torch.randn(7, 3))
    assert len(layer.codebook.unique(dim=0)) == 20


def test_a_kmeans_start_is_nearly_as_good_as_sklearn() -> None:
    torch.manual_seed(0)
    x = (torch.randn(20, 4) * 3)[torch.randint(20, (2000,))] + 0.2 * torch.randn(2000, 4)
    layer = VectorQuantizer(4, 20, start=KMeansStart(iterations=20)).start_from(x).eval()
    ours = float(layer(x).metrics["distortion"])
    best = KMeans(20, n_init=3, random_state=0).fit(x.numpy()).inertia_ / x.numel()
    assert ours < 1.5 * best


def test_dead_codewords_move_to_vectors_with_a_fresh_count_and_sum() -> None:
    torch.manual_seed(0)
    layer = VectorQuantizer(2, 8, start=RandomStart(0.1), dead=Revive(period=5), decay=0.5)
    layer.codebook.data[4:] = 1000.0
    x = torch.randn(64, 2)
    revived = [float(layer(x).metrics["revived"]) for _ in range(5)]
    assert revived[:4] == [0, 0, 0, 0]
    assert revived[4] >= 4
    assert layer.codebook.abs().max() < 10
    torch.testing.assert_close(
        layer.book.sums, layer.book.counts.unsqueeze(-1) * layer.book.codewords
    )
    # Alive from now on: the next look finds nothing of what it has just placed.
    assert float(layer(x).metrics["revived"]) == 0


def clustered(decay: float, **settings: Any) -> int:
    """Codes in use after 1,200 steps on 400 clusters in 16 dimensions."""
    torch.manual_seed(0)
    centres = 2 * torch.randn(400, 16)
    layer = build({"dim": 16, "codebook_size": 256, "decay": decay, **settings})
    for _ in range(1200):
        layer(centres[torch.randint(400, (512,))] + 0.3 * torch.randn(512, 16))
    layer.eval()
    x = centres[torch.randint(400, (20_000,))] + 0.3 * torch.randn(20_000, 16)
    return len(layer.encode(x).unique())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vector", "soft_em"])
@pytest.mark.parametrize("decay", [0.99, 0.999])
def test_the_defaults_keep_nearly_all_codewords_alive(name: str, decay: float) -> None:
    assert clustered(decay, quantizer=name) >= 250


def test_accumulated_batches_teach_like_one_joined_batch() -> None:
    torch.manual_seed(0)
    x = torch.randn(96, 4)
    joined, pieces = (VectorQuantizer(4, 16, start="random") for _ in range(2))
    pieces.load_state_dict(joined.state_dict())
    joined(x)
    defer_updates(pieces)
    for piece in x.split(32):
        pieces(piece)
    assert torch.equal(pieces.book.steps, torch.tensor(0))
    apply_updates(pieces)
    torch.testing.assert_close(pieces.codebook, joined.codebook)
    assert torch.equal(pieces.book.steps, joined.book.steps)


def test_codebooks_that_follow_an_optimizer_learn_at_its_steps() -> None:
    encoder = torch.nn.Linear(4, 4)
    layer = VectorQuantizer(4, 16)
    model = torch.nn.ModuleList([encoder, layer])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    follow(model, optimizer)
    for step in range(4):
        layer(encoder(torch.randn(10, 4))).loss.backward()
        if step % 2:
            optimizer.step()
    assert int(layer.book.steps) == 2


@pytest.mark.parametrize(
    "bad",
    [
        {"codebook_size": 1},
        {"dim": 0},
        {"dim": 2.5},
        {"beta": -1.0},
        {"decay": 1.0},
        {"learning": "magic"},
        {"start": "nowhere"},
        {"dead": 3},
        {"gradient": "none"},
        {"start": {"kind": "random", "colour": 1}},
    ],
)
def test_impossible_settings_are_refused_at_construction(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        VectorQuantizer(**{"dim": 2, "codebook_size": 4, **bad})


def test_a_kmeans_start_compiles_once_it_has_happened() -> None:
    layer = VectorQuantizer(4, 8, start="kmeans++")
    torch._dynamo.reset()
    with pytest.raises(Exception, match="call start_from"):
        torch.compile(layer, fullgraph=True, backend="aot_eager")(torch.randn(50, 4))
    layer.start_from(torch.randn(50, 4))
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert compiled(torch.randn(50, 4)).codes.shape == (50, 1)


def test_a_graph_compiled_before_the_first_batch_starts_from_data_once() -> None:
    layer = VectorQuantizer(4, 32, dead="keep", decay=0.0)
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    x = torch.randn(400, 4)
    # Lloyd steps on one batch: starting anew would throw the error up again.
    errors = [float(compiled(x).metrics["distortion"]) for _ in range(8)]
    assert errors[0] < 1
    assert all(later <= earlier + 1e-6 for earlier, later in itertools.pairwise(errors))


def test_freezing_forgets_what_was_collected() -> None:
    layer = VectorQuantizer(4, 8).start_from(torch.randn(50, 4))
    defer_updates(layer)
    layer(torch.randn(50, 4))
    before = layer.codebook.clone()
    layer.freeze()
    apply_updates(layer)
    assert torch.equal(layer.codebook, before)


def test_freezing_a_gradient_codebook_stops_the_optimizer() -> None:
    layer = VectorQuantizer(4, 8, learning="gradient")
    optimizer = torch.optim.Adam(layer.parameters())
    layer(torch.randn(50, 4)).loss.backward()
    before = layer.codebook.detach().clone()
    layer.freeze()
    optimizer.step()
    assert torch.equal(layer.codebook, before)


def test_a_loaded_state_forgets_what_was_collected() -> None:
    layer = VectorQuantizer(4, 8).start_from(torch.randn(50, 4))
    kept = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    defer_updates(layer)
    layer(torch.randn(50, 4))
    layer.load_state_dict(kept)
    apply_updates(layer)
    assert torch.equal(layer.book.codewords, kept["book.codewords"])


@pytest.mark.parametrize(
    "bad",
    [
        {"beta": "a"},
        {"beta": None},
        {"beta": True},
        {"beta": float("inf")},
        {"decay": None},
        {"dim": True},
        {"codebook_size": 2**70},
        {"dead": {"kind": "revive", "period": 1.5}},
        {"start": {"kind": "random", "scale": "x"}},
    ],
)
def test_settings_of_the_wrong_type_are_refused_at_construction(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        VectorQuantizer(**{"dim": 2, "codebook_size": 4, **bad})


def test_numbers_of_numpy_are_numbers() -> None:
    layer = VectorQuantizer(np.int64(4), np.int32(8), beta=np.float32(0.5))
    assert layer.spec()["dim"] == 4
    assert type(layer.spec()["beta"]) is float


@pytest.mark.parametrize("bad", [None, 5, [1], {"dim": 4}, {"quantizer": "vector", 3: 4}])
def test_a_spec_that_is_none_is_refused(bad: Any) -> None:
    with pytest.raises(ConfigError):
        build(bad)


def test_settings_are_added_to_a_spec() -> None:
    assert (
        build({"quantizer": "vector", "dim": 4, "codebook_size": 8}, beta=0.7).spec()["beta"] == 0.7
    )
