"""Grids of codes as streams: under every prior, on several levels, in any company."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from smalti.codec import read_codes, write_codes
from smalti.errors import ArtifactError, DataError, ShapeError
from smalti.priors import Level, LevelsPrior, Unigram, priors

LEVELS = [Level((2, 3), (5,)), Level((4, 6), (16, 7))]


def some_codes(count: int) -> tuple[Tensor, ...]:
    """Grids whose codes prefer small numbers."""
    generator = torch.Generator().manual_seed(count)
    grids = []
    for level in LEVELS:
        shape = (count, *level.grid, level.num_codebooks)
        chances = torch.rand(shape, generator=generator).square()
        grids.append((chances * torch.tensor(level.code_sizes)).long())
    return tuple(grids)


def some_prior(name: str) -> LevelsPrior:
    """A prior with weights that say something."""
    torch.manual_seed(5)
    settings = {"dim": 16, "depth": 2, "heads": 2} if name == "autoregressive" else {}
    prior = LevelsPrior.over(LEVELS, name, **settings)
    for member, grid in zip(prior.members(), some_codes(50), strict=True):
        if isinstance(member, Unigram):
            member.fit(grid)
    with torch.no_grad():
        for parameter in prior.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return prior


def equal(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    """The same grids."""
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("count", [1, 7])
@pytest.mark.parametrize("name", priors.names())
def test_codes_come_back_and_take_what_the_prior_says(name: str, count: int) -> None:
    prior, codes = some_prior(name), some_codes(count)
    stream = write_codes(prior, codes)
    assert equal(read_codes(prior, count, stream), codes)
    bits = float(prior.nats(codes).sum()) / math.log(2)
    assert stream.ideal_bits == pytest.approx(bits, rel=2e-3)
    assert bits * 0.998 <= 8 * len(stream.payload) <= bits * 1.002 + 64


def test_a_uniform_prior_takes_the_log_of_the_sizes() -> None:
    level = Level((8, 8), (256, 2))
    prior = LevelsPrior.over([level], "uniform")
    codes = torch.randint(2, (10, 8, 8, 2))
    stream = write_codes(prior, [codes])
    # 10 grids of 64 places of 8 bits and 1 bit.
    assert stream.ideal_bits == pytest.approx(5760, rel=1e-6)
    assert 720 <= len(stream.payload) <= 728


@pytest.mark.parametrize("name", priors.names())
def test_streams_do_not_depend_on_threads(name: str) -> None:
    torch.manual_seed(6)
    settings = {"dim": 64, "depth": 1, "heads": 2} if name == "autoregressive" else {}
    prior = LevelsPrior.over([Level((2, 2), (300,))], name, **settings)
    codes = torch.randint(300, (50, 2, 2, 1))
    torch.set_num_threads(1)
    alone = write_codes(prior, [codes])
    torch.set_num_threads(2)
    assert write_codes(prior, [codes]) == alone
    assert equal(read_codes(prior, 50, alone), [codes])


def test_a_grid_costs_the_same_alone_and_in_company() -> None:
    prior, codes = some_prior("autoregressive"), some_codes(7)
    together = write_codes(prior, codes).ideal_bits
    one_by_one = [
        write_codes(prior, [grid[number : number + 1] for grid in codes]) for number in range(7)
    ]
    assert sum(stream.ideal_bits for stream in one_by_one) == pytest.approx(together, rel=1e-12)


def test_dropout_and_training_mode_change_nothing() -> None:
    prior = LevelsPrior.over(LEVELS, "autoregressive", dim=16, depth=1, heads=2, dropout=0.5)
    codes = some_codes(3)
    assert write_codes(prior.train(), codes) == write_codes(prior.eval(), codes)


def test_another_prior_is_found_out() -> None:
    prior, codes = some_prior("autoregressive"), some_codes(7)
    stream = write_codes(prior, codes)
    with torch.no_grad():
        next(prior.parameters()).mul_(1.01)
    with pytest.raises(ArtifactError, match="other probabilities"):
        read_codes(prior, 7, stream)


def test_codes_that_do_not_fit_are_refused() -> None:
    prior, (top, bottom) = some_prior("unigram"), some_codes(2)
    with pytest.raises(ShapeError, match="2 levels"):
        write_codes(prior, [top])
    with pytest.raises(ShapeError, match="expected codes"):
        write_codes(prior, [top, bottom[:, :3]])
    with pytest.raises(DataError):
        write_codes(prior, [top + 5, bottom])
