"""The nearest codeword: exact, tie to the lowest code, in a bounded block of memory."""

from __future__ import annotations

import functools
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import Tensor

from smalti.errors import ShapeError
from smalti.quantizers import native, nearest
from smalti.quantizers.nearest import best_scoring

WAYS = ["torch", pytest.param("native", marks=pytest.mark.skipif(
    not native.available(), reason="the extra 'fast' (llvmlite) is not installed"))]  # fmt: skip


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Search with torch alone, and with the compiled loops wherever they can run."""
    if request.param == "torch":
        monkeypatch.setattr(native, "available", lambda: False)
    else:
        monkeypatch.setattr(native, "LEAST_WORK", 1)
        monkeypatch.setattr(native, "WIDEST", 64)
    return str(request.param)


def squared_distances(x: Tensor, codebook: Tensor) -> np.ndarray:
    """Brute force in float64, by numpy."""
    gaps = x.double().numpy()[:, None, :] - codebook.double().numpy()[None, :, :]
    return np.asarray((gaps**2).sum(-1))


def assert_nearest(codes: Tensor, x: Tensor, codebook: Tensor) -> None:
    """Equal to brute force, except where two codewords tie within float32 rounding."""
    distances = squared_distances(x, codebook)
    best, chosen = distances.min(1), distances[np.arange(len(x)), codes.numpy()]
    scale = (x.double().numpy() ** 2).sum(1) + (codebook.double().numpy() ** 2).sum(1).max()
    assert (chosen - best <= 1e-6 * scale).all()
    assert (codes.numpy() == distances.argmin(1)).mean() > 0.995


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dim", [1, 2, 3, 4, 5, 8, 16, 17, 64, 200, 1024])
@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 1000])
def test_codes_equal_a_brute_force_in_float64(dim: int, size: int) -> None:
    torch.manual_seed(dim * 1000 + size)
    # Brute force holds all differences.
    many = 300 if dim * size < 300_000 else 60
    x, codebook = torch.randn(many, dim), torch.randn(size, dim)
    assert_nearest(nearest(x, codebook), x, codebook)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(("dim", "size"), [(1, 65_536), (2, 32_768), (8, 8192), (32, 20_000)])
def test_large_codebooks_are_searched_whole(dim: int, size: int) -> None:
    torch.manual_seed(0)
    x, codebook = torch.randn(60, dim), torch.randn(size, dim)
    assert_nearest(nearest(x, codebook), x, codebook)


@pytest.mark.parametrize("dim", [2, 8, 16])
def test_boxes_change_nothing_but_the_time(dim: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native.available():
        pytest.skip("the extra 'fast' (llvmlite) is not installed")
    torch.manual_seed(0)
    centres = torch.randn(20, dim)
    codebook = centres[torch.randint(20, (3000,))] + 0.1 * torch.randn(3000, dim)
    x = centres[torch.randint(20, (7000,))] + 0.1 * torch.randn(7000, dim)
    boxed = nearest(x, codebook)
    monkeypatch.setattr(native, "LEAST_BOXED", 10**9)
    assert torch.equal(boxed, nearest(x, codebook))
    assert_nearest(boxed[:200], x[:200], codebook)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dim", [1, 2, 6, 40])
def test_ties_go_to_the_lowest_code(dim: int) -> None:
    codebook = torch.zeros(200, dim)
    codebook[:, 0] = torch.tensor([5.0, 3.0, 1.0, 3.0] * 50)
    x = torch.zeros(4, dim)
    x[:, 0] = torch.tensor([5.0, 3.0, 0.0, 2.0])
    # 2 lies between 3 (first at code 1) and 1 (first at code 2).
    assert nearest(x, codebook).tolist() == [0, 1, 2, 1]


def test_ties_go_to_the_lowest_code_in_boxes_too() -> None:
    codebook = torch.randn(100, 4, generator=torch.Generator().manual_seed(0)).repeat(30, 1)
    x = torch.randn(8000, 4, generator=torch.Generator().manual_seed(1))
    codes = nearest(x, codebook)
    assert codes.max() < 100
    assert_nearest(codes[:100], x[:100], codebook)


@pytest.mark.usefixtures("way")
def test_a_common_offset_does_not_cancel_the_digits() -> None:
    torch.manual_seed(0)
    x, codebook = torch.randn(500, 8), torch.randn(100, 8)
    moved = nearest(x + 1000.0, codebook + 1000.0)
    assert (moved == nearest(x, codebook)).float().mean() > 0.99


@pytest.mark.usefixtures("way")
def test_a_stack_is_searched_part_by_part() -> None:
    torch.manual_seed(0)
    x, codebooks = torch.randn(5, 70, 6), torch.randn(5, 33, 6)
    expected = torch.stack([nearest(x[i], codebooks[i]) for i in range(5)])
    assert torch.equal(nearest(x, codebooks), expected)


def test_the_best_score_is_that_of_a_plain_product() -> None:
    torch.manual_seed(0)
    x, weight, bias = torch.randn(3, 50, 7), torch.randn(3, 90, 7), torch.randn(3, 90)
    expected = (x @ weight.transpose(1, 2) + bias[:, None]).argmax(-1)
    assert torch.equal(best_scoring(x, weight, bias), expected)


@pytest.mark.usefixtures("way")
def test_no_vectors_have_no_codes() -> None:
    assert nearest(torch.empty(0, 8), torch.randn(10, 8)).shape == (0,)
    assert nearest(torch.empty(2, 0, 1), torch.randn(10, 1)).shape == (2, 0)


@pytest.mark.usefixtures("way")
def test_one_thread_and_two_give_the_same() -> None:
    torch.manual_seed(0)
    x, codebook = torch.randn(3001, 8), torch.randn(500, 8)
    found = []
    for count in (1, 2):
        torch.set_num_threads(count)
        found.append(nearest(x, codebook))
    assert torch.equal(*found)


def test_threads_of_our_own_serve_where_torch_has_no_gnu_openmp(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not native.available():
        pytest.skip("the extra 'fast' (llvmlite) is not installed")
    torch.manual_seed(0)
    x, codebook = torch.randn(9000, 8), torch.randn(500, 8)
    expected = nearest(x, codebook)
    monkeypatch.setattr(native, "_openmp_team", lambda: None)
    monkeypatch.setattr(native, "_compiled", functools.cache(native._Search))
    assert torch.equal(nearest(x, codebook), expected)


def test_shapes_that_do_not_fit_are_named() -> None:
    with pytest.raises(ShapeError, match=r"\(\.\.\., 4\).*got \(5, 3\)"):
        nearest(torch.randn(5, 3), torch.randn(10, 4))
    with pytest.raises(ShapeError, match="stack of 2"):
        nearest(torch.randn(3, 5, 4), torch.randn(2, 10, 4))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4, 1e6, 1e15])
def test_long_vectors_find_the_codeword_in_their_direction(scale: float) -> None:
    torch.manual_seed(0)
    x, codebook = scale * torch.randn(2000, 8), torch.randn(256, 8)
    expected = squared_distances(x, codebook)
    if scale > 1e5:
        # |x|^2 drowns everything even in float64; without it the order is the same.
        expected = (codebook.double() ** 2).sum(1).numpy() - 2 * (
            x.double() @ codebook.double().t()
        ).numpy()
    assert (nearest(x, codebook).numpy() == expected.argmin(1)).mean() > 0.999


MEMORY = """
import re, torch
def peak():
    # Of this program alone: what rusage reports begins with the process that started it.
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024
from smalti.quantizers import VectorQuantizer
torch.set_num_threads(2)
layer = VectorQuantizer(32, 32768)
x = torch.randn(2048, 32, requires_grad=True)
layer(x[:64]).loss.backward()
before = peak()
for _ in range(3):
    out = layer(x)
    (out.vectors.sum() + out.loss).backward()
print(peak() - before)
"""


@pytest.mark.slow
def test_a_training_step_with_32768_codewords_takes_at_most_50_megabytes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 50
