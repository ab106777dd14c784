"""What is particular to ResidualCodes; the common contract is in tests/contracts."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from smalti.embeddings import CodedTable, ResidualCodes
from smalti.embeddings.least_squares import PULL, refit
from smalti.embeddings.residual_codes import added_up, improved, search
from smalti.errors import ConfigError


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def some_codes(n: int, stages: int, size: int) -> Tensor:
    return torch.randint(size, (n, stages), generator=torch.Generator().manual_seed(7))


def errors(x: Tensor, codebooks: Tensor, codes: Tensor) -> np.ndarray:
    """Squared lengths of what is left over, in float64, row by row."""
    left = x.double().numpy().copy()
    for stage, book in enumerate(codebooks.double().numpy()):
        left -= book[codes[:, stage].numpy()]
    return (left**2).sum(1)


def distortion(compressor: ResidualCodes, table: Tensor, **settings: Any) -> float:
    made = compressor.fit(table, **settings)
    return float((made.dense().double() - table.double()).square().sum())


def as_matrix(codes: Tensor, size: int) -> np.ndarray:
    """One column a codeword, with ones where a row uses it."""
    n, stages = codes.shape
    used = np.zeros((n, stages * size))
    for stage in range(stages):
        used[np.arange(n), stage * size + codes[:, stage].numpy()] = 1.0
    return used


def test_codewords_are_added_up() -> None:
    codebooks = torch.tensor([[[1.0, 0.0], [2.0, 0.0]], [[0.0, 5.0], [0.0, 7.0]]])
    assert added_up(codebooks, torch.tensor([[1, 0], [0, 1]])).tolist() == [[2.0, 5.0], [1.0, 7.0]]


def test_a_beam_of_one_is_greedy() -> None:
    x, codebooks = (
        normal(300, 6),
        normal(4, 9, 6, seed=1) * torch.tensor([1, 0.7, 0.5, 0.3])[:, None, None],
    )
    left, expected = x.double().numpy().copy(), []
    for book in codebooks.double().numpy():
        codes = ((left[:, None] - book) ** 2).sum(-1).argmin(1)
        left -= book[codes]
        expected.append(codes)
    np.testing.assert_array_equal(search(x, codebooks, 1).numpy(), np.stack(expected, axis=1))


def test_a_beam_that_drops_nothing_finds_the_best_codes() -> None:
    x, codebooks = normal(100, 5), normal(3, 4, 5, seed=1)
    every = torch.tensor(list(product(range(4), repeat=3)))
    sums = sum(codebooks[stage].double().numpy()[every[:, stage]] for stage in range(3))
    best = ((x.double().numpy()[:, None] - sums) ** 2).sum(-1).min(1)
    np.testing.assert_allclose(errors(x, codebooks, search(x, codebooks, 16)), best, atol=1e-5)
    # A beam wider than there are candidates is no mistake.
    np.testing.assert_allclose(errors(x, codebooks, search(x, codebooks, 999)), best, atol=1e-5)


def test_wider_beams_are_not_worse() -> None:
    x, codebooks = normal(500, 6), normal(4, 16, 6, seed=1) * 0.7
    totals = [errors(x, codebooks, search(x, codebooks, beam)).sum() for beam in (1, 2, 4, 16, 64)]
    assert totals == sorted(totals, reverse=True)
    assert totals[2] < 0.9 * totals[0]


def test_blocks_of_rows_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    x, codebooks = normal(50, 6), normal(3, 8, 6, seed=1)
    whole = search(x, codebooks, 3)
    monkeypatch.setattr("smalti.embeddings.residual_codes.BLOCK_SCORES", 7 * 3 * 8)
    assert torch.equal(search(x, codebooks, 3), whole)


def test_codes_are_exchanged_only_for_better_ones() -> None:
    x, codebooks = normal(400, 6), normal(4, 8, 6, seed=1)
    best, poor = search(x, codebooks, 64), some_codes(400, 4, 8)
    old = torch.where(torch.arange(400)[:, None] < 200, best, poor)
    kept = errors(x, codebooks, improved(x, codebooks, old, 1))
    assert (kept <= errors(x, codebooks, old) + 1e-5).all()
    assert (kept <= errors(x, codebooks, search(x, codebooks, 1)) + 1e-5).all()


@pytest.mark.parametrize(("stages", "size"), [(1, 6), (2, 5), (3, 4)])
def test_refitted_codebooks_are_least_squares(stages: int, size: int) -> None:
    x, old = normal(200, 3), normal(stages, size, 3, seed=1)
    codes = some_codes(200, stages, size)
    weights = torch.rand(200, generator=torch.Generator().manual_seed(2)) + 0.2
    made = refit(x, codes, weights, old)
    used = as_matrix(codes, size)
    root = np.sqrt(weights.double().numpy() / weights.double().numpy().mean())[:, None]
    # A little pull towards the old codewords: more rows, one for each.
    pull = np.sqrt(PULL * 200 / (stages * size))
    design = np.concatenate([root * used, pull * np.eye(stages * size)])
    wanted = np.concatenate([root * x.double().numpy(), pull * old.flatten(0, 1).double().numpy()])
    expected = np.linalg.lstsq(design, wanted, rcond=None)[0]
    np.testing.assert_allclose(made.flatten(0, 1).numpy(), expected, atol=1e-5)
    # It costs next to nothing: without the pull the error is hardly smaller.
    plain = np.linalg.lstsq(root * used, root * x.double().numpy(), rcond=None)[0]
    least = ((root * (x.double().numpy() - used @ plain)) ** 2).sum()
    ours = ((root * (x.double().numpy() - used @ made.flatten(0, 1).double().numpy())) ** 2).sum()
    assert least <= ours <= least * (1 + 1e-4)


def test_codewords_without_use_stay() -> None:
    x, old = normal(100, 3), normal(2, 5, 3, seed=1)
    made = refit(x, some_codes(100, 2, 4), torch.ones(100), old)
    torch.testing.assert_close(made[:, 4], old[:, 4])


def test_refitting_undoes_what_moved_the_codewords() -> None:
    codebooks = normal(3, 8, 4)
    codes = some_codes(300, 3, 8)
    x = added_up(codebooks, codes)
    moved = codebooks + 0.3 * normal(3, 8, 4, seed=1)
    again = refit(x, codes, torch.ones(300), moved)
    assert errors(x, again, codes).sum() < 1e-4 * errors(x, moved, codes).sum()


@pytest.mark.parametrize("rows", [150, 600])
def test_refits_only_help(rows: int) -> None:
    """Also where codebooks are nearly as large as the table, and a beam finds the codes no more."""
    table = normal(rows, 8)
    found = [distortion(ResidualCodes(3, 16, beam=2, refits=refits), table) for refits in (0, 1, 3)]
    assert found == sorted(found, reverse=True)


def test_more_stages_and_wider_beams_lose_less() -> None:
    table = normal(400, 8)
    stages = [distortion(ResidualCodes(some, 8), table) for some in (1, 2, 4)]
    assert stages == sorted(stages, reverse=True)
    beams = [distortion(ResidualCodes(4, 8, beam=beam), table) for beam in (1, 8)]
    assert beams[1] < beams[0]


def test_parts_are_coded_side_by_side() -> None:
    table = normal(200, 12)
    settings: dict[str, Any] = {"num_codebooks": 2, "codebook_size": 8, "precision": "float32"}
    made = ResidualCodes(parts=3, **settings).fit(table)
    assert isinstance(made, CodedTable)
    assert (made.parts, made.stages) == (3, 2)
    codes = made.take_codes(torch.arange(200))
    for part in range(3):
        piece = table[:, 4 * part : 4 * part + 4]
        mine = errors(piece, made.codebooks[part].detach(), codes[:, 2 * part : 2 * part + 2])
        gaps = (made.dense() - table)[:, 4 * part : 4 * part + 4].double().square().sum(1)
        np.testing.assert_allclose(gaps.numpy(), mine, atol=1e-4)
        assert mine.sum() < 0.5 * piece.square().sum()


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_codes_fit_the_codebooks_as_they_are_stored(precision: str) -> None:
    """No single code can be exchanged for a better one in the last stage."""
    table = normal(300, 6)
    made = ResidualCodes(2, 16, precision=precision).fit(table)
    assert isinstance(made, CodedTable)
    state = made.state_dict()
    codebooks = (state["codebooks"].float() * state.get("steps", torch.ones(1)))[0]
    codes = made.take_codes(torch.arange(300))
    best = errors(table, codebooks, codes)
    for code in range(16):
        other = codes.clone()
        other[:, 1] = code
        assert (errors(table, codebooks, other) >= best - 1e-5).all()


def test_common_rows_lose_less() -> None:
    table = normal(400, 8)
    counts = torch.ones(400)
    counts[:20] = 10_000
    compressor = ResidualCodes(2, 8, power=1.0)
    gaps = [
        (compressor.fit(table, counts=some).dense() - table)[:20].square().sum()
        for some in (counts, None)
    ]
    assert gaps[0] < 0.3 * gaps[1]


@pytest.mark.parametrize(
    "bad",
    [
        {"num_codebooks": 0},
        {"codebook_size": 1},
        {"parts": 0},
        {"beam": 0},
        {"refits": -1},
        {"power": -0.1},
        {"precision": "int4"},
    ],
)
def test_impossible_settings_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(bad))):
        ResidualCodes(**bad)


def test_equations_beyond_any_memory_are_refused_before_the_work() -> None:
    with pytest.raises(ConfigError, match="refits=0"):
        ResidualCodes(num_codebooks=8, codebook_size=4096)
    assert ResidualCodes(num_codebooks=8, codebook_size=4096, refits=0).refits == 0


def test_parts_must_divide_the_width() -> None:
    with pytest.raises(ConfigError, match="divide the width 10"):
        ResidualCodes(2, 4, parts=3).fit(normal(20, 10))
