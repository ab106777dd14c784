"""What is particular to Adaptive: selection, rate, and the slabs of the published code."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
import torch

from smalti.errors import ConfigError, DataError
from smalti.quantizers import Adaptive
from smalti.quantizers.adaptive import PAPER_POOL

POOL = ((8, 4), (16, 2), (32, 1))


def test_the_papers_pool_has_one_capacity() -> None:
    assert PAPER_POOL[0] == (512, 128)
    assert PAPER_POOL[-1] == (65_536, 1)
    assert {size * width for size, width in PAPER_POOL} == {65_536}


def test_the_upper_bound_is_the_largest_codebook_and_the_selection() -> None:
    assert Adaptive(8, POOL).bits_per_vector == pytest.approx(math.log2(3) + 5)
    slab = Adaptive(8, POOL, selection="slab")
    assert slab.bits_per_vector == pytest.approx(math.log2(3) + 3 + 4 + 5)


def test_the_measured_rate_is_entropy_of_selection_plus_selected_words() -> None:
    torch.manual_seed(0)
    layer = Adaptive(8, POOL)
    out = layer(torch.randn(300, 8))
    shares = torch.bincount(out.codes[:, 0], minlength=3).double() / 300
    entropy = -(shares * shares.log2()).sum()
    words = (shares * torch.tensor([3.0, 4.0, 5.0])).sum()
    torch.testing.assert_close(out.metrics["rate_bits"].double(), entropy + words)
    torch.testing.assert_close(out.metrics["share/1"].double(), shares[1])


def test_words_stay_within_the_selected_codebook() -> None:
    torch.manual_seed(0)
    codes = Adaptive(8, POOL)(torch.randn(500, 8)).codes
    sizes = torch.tensor([8, 16, 32])
    assert (codes[:, 1] < sizes[codes[:, 0]]).all()


def test_the_word_is_the_nearest_of_the_selected_codebook_by_brute_force() -> None:
    torch.manual_seed(0)
    layer = Adaptive(8, POOL)
    x = torch.randn(200, 8)
    layer(x)
    layer.eval()
    with torch.no_grad():
        codes = layer.encode(x)
        projected = [project(x).numpy() for project in layer.project_in]
    books = [
        book.book.codewords.detach().numpy().reshape(-1, width)
        for book, (_, width) in zip(layer.books, POOL, strict=True)
    ]
    for place, (chosen, word) in enumerate(codes.tolist()):
        gaps = ((books[chosen] - projected[chosen][place]) ** 2).sum(axis=1)
        assert gaps[word] == pytest.approx(gaps.min(), rel=1e-5)
    assert set(codes[:, 0].tolist()) == {0, 1, 2}


def test_a_word_beyond_its_codebook_is_refused() -> None:
    layer = Adaptive(8, POOL)
    with pytest.raises(DataError, match=r"codebook 0 in 0\.\.7, got 20"):
        layer.decode(torch.tensor([[0, 20]]))


def test_scores_are_the_mean_of_two_heads_before_the_softmax() -> None:
    torch.manual_seed(0)
    layer = Adaptive(8, POOL)
    x = torch.randn(5, 8)
    query, key = layer.to_query(x), layer.to_key(layer.keys)
    heads = [query[:, h : h + 4] @ key[:, h : h + 4].t() / 2 for h in (0, 4)]
    torch.testing.assert_close(layer._scores(x), (heads[0] + heads[1]) / 2)


def test_the_selector_learns_from_the_task() -> None:
    layer = Adaptive(8, POOL)
    (layer(torch.randn(100, 8)).vectors * torch.randn(100, 8)).sum().backward()
    assert layer.keys.grad is not None
    assert layer.keys.grad.abs().sum() > 0


def test_only_selected_codebooks_learn_when_asked_to() -> None:
    torch.manual_seed(0)
    layer = Adaptive(8, POOL, update="selected")
    out = layer(torch.randn(200, 8))
    for index, book in enumerate(layer._books()):
        counted = book.book.counts.sum() / (1 - book.decay)
        assert counted == pytest.approx(float((out.codes[:, 0] == index).sum()), rel=1e-4)


def test_slabs_are_rows_of_the_channels_first_tensor() -> None:
    """As published: a selection rules ``dim`` consecutive numbers of (channels, height, width)."""
    torch.manual_seed(0)
    layer = Adaptive(8, POOL, selection="slab")
    x = torch.randn(2, 2, 4, 8)
    layer(x)
    layer.eval()
    out = layer(x)
    flat = x.reshape(-1, 8)
    outs = [
        layer.project_out[i](book.decode(book.encode(layer.project_in[i](flat)))).view(x.shape)
        for i, book in enumerate(layer._books())
    ]
    slabs = torch.stack([one.permute(0, 3, 1, 2).reshape(-1, 8) for one in outs])
    queries = x.permute(0, 3, 1, 2).reshape(-1, 8)
    selected = layer._scores(queries).argmax(-1)
    expected = slabs[selected, torch.arange(len(selected))]
    expected = expected.view(2, 8, 2, 4).permute(0, 2, 3, 1)
    torch.testing.assert_close(out.vectors, expected)
    assert torch.equal(layer.decode(out.codes), out.vectors)
    assert float(out.metrics["rate_bits"]) >= 12


@pytest.mark.parametrize(
    "bad",
    [{"pool": ((8, 4),)}, {"pool": ((8, 4), (1, 2))}, {"pool": (8, 4)}, {"dim": 7},
     {"update": "some"}, {"selection": "row"}, {"selector": "best"}, {"schedule": "x"},
     {"selection": "slab", "update": "selected"}],
)  # fmt: skip
def test_impossible_settings_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        Adaptive(**{"dim": 8, "pool": POOL, **bad})  # type: ignore[arg-type]


MEMORY = """
import re, torch
def peak():
    # Of this program alone: what rusage reports begins with the process that started it.
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024
from smalti.quantizers import Adaptive
layer = Adaptive(128)
optimizer = torch.optim.Adam(layer.parameters())
for _ in range(3):
    out = layer(torch.randn(64, 8, 8, 128, requires_grad=True))
    (out.vectors.square().mean() + out.loss).backward()
    optimizer.step()
print(peak() / 1024)
"""


@pytest.mark.slow
def test_the_papers_pool_trains_in_less_than_2_gibibytes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 2


def test_learning_from_selected_vectors_alone_leaves_the_selector_its_gradient() -> None:
    gradients = []
    for update in ("all", "selected"):
        torch.manual_seed(0)
        layer = Adaptive(8, POOL, update=update).start_from(torch.randn(300, 8))
        torch.manual_seed(1)
        (layer(torch.randn(100, 8)).vectors * torch.randn(100, 8)).sum().backward()
        gradients.append(layer.keys.grad)
    torch.testing.assert_close(*gradients)


def test_no_codes_decode_to_no_vectors() -> None:
    assert Adaptive(8, POOL).decode(torch.zeros(0, 2, dtype=torch.int64)).shape == (0, 8)


def test_a_random_selector_takes_each_codebook_as_often_in_training_and_in_evaluation() -> None:
    torch.manual_seed(0)
    layer = Adaptive(8, POOL, selector="random")
    x = torch.randn(30_000, 8)
    for _ in ("training", "evaluation"):
        shares = torch.bincount(layer(x).codes[:, 0], minlength=3) / len(x)
        # Five standard deviations of a share of a third.
        assert (shares - 1 / 3).abs().max() < 5 * math.sqrt(2 / 9 / len(x))
        layer.eval()
    out = layer(x)
    assert torch.equal(layer.decode(layer.encode(x)), out.vectors)
    # Its choice is the vector's, whatever stands beside it.
    assert torch.equal(layer.encode(x[7:9]), out.codes[7:9])


def test_a_random_selector_has_nothing_to_learn() -> None:
    learned = dict(Adaptive(8, POOL, selector="random").named_parameters())
    assert all(name.startswith(("project_in", "project_out")) for name in learned)


def test_codebooks_learn_by_gradients_where_that_is_asked_for() -> None:
    torch.manual_seed(0)
    layer = Adaptive(8, POOL, learning="gradient")
    out = layer(torch.randn(50, 8))
    out.loss.backward()
    # The pull of the vectors on their codewords, at the weight 1 of all codebooks together.
    assert all(book.book.codewords.grad.abs().sum() > 0 for book in layer._books())
    assert not any(p.requires_grad for p in Adaptive(8, POOL)._books()[0].book.parameters())
