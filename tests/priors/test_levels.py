"""The prior of several levels, and the parts it is put together from."""

from __future__ import annotations

import itertools
import json
import math

import pytest
import torch
from torch.nn.functional import one_hot

from smalti.errors import ConfigError, DataError, ShapeError
from smalti.priors import (
    Autoregressive,
    Level,
    LevelsPrior,
    Uniform,
    Unigram,
)
from smalti.priors.level import as_level
from smalti.priors.sampling import draw

TOP, BOTTOM = Level((1, 1), (3,)), Level((1, 2), (2, 2))


def three_levels() -> LevelsPrior:
    torch.manual_seed(1)
    levels = [Level((1, 1), (3,)), Level((2, 2), (4, 2)), Level((4, 4), (5,))]
    return LevelsPrior.over(levels, "autoregressive", dim=16, depth=1, heads=2)


def shaken(prior: LevelsPrior) -> LevelsPrior:
    with torch.no_grad():
        for parameter in prior.parameters():
            parameter.add_(0.4 * torch.randn(parameter.shape))
    return prior


def test_the_probabilities_of_all_codes_of_all_levels_add_up_to_one() -> None:
    torch.manual_seed(2)
    prior = shaken(LevelsPrior.over([TOP, BOTTOM], "autoregressive", dim=8, depth=1, heads=2))
    every = torch.tensor(list(itertools.product(range(3), *[range(2)] * 4)))
    codes = (every[:, :1].view(-1, 1, 1, 1), every[:, 1:].view(-1, 1, 2, 2))
    assert float((-prior.nats(codes)).exp().sum()) == pytest.approx(1, abs=1e-6)


def test_nats_add_up_over_levels_and_the_loss_is_their_mean_over_codes() -> None:
    prior = shaken(three_levels())
    codes = prior.sample(6, generator=torch.Generator().manual_seed(3))
    assert [tuple(item.shape[1:]) for item in codes] == [(1, 1, 1), (2, 2, 2), (4, 4, 1)]
    each = prior.level_nats(codes)
    for number, member in enumerate(prior.members()):
        assert torch.equal(each[:, number], member.nats(codes[number], codes[:number]))
    torch.testing.assert_close(prior.nats(codes), each.sum(dim=1))
    # By hand: 1 + 8 + 16 codes.
    expected = float(prior.nats(codes).mean()) / 25
    assert float(prior.loss(codes).detach()) == pytest.approx(expected, rel=1e-5)
    assert torch.equal(prior(codes), prior.loss(codes))


def test_levels_may_have_soft_labels_or_none() -> None:
    prior = shaken(three_levels())
    codes = prior.sample(6, generator=torch.Generator().manual_seed(3))
    labels = one_hot(codes[1], 4).float()
    torch.testing.assert_close(prior.loss(codes, [None, labels, None]), prior.loss(codes))


def test_samples_are_alike_with_and_without_the_cache() -> None:
    prior = shaken(three_levels())
    one, other = (
        prior.sample(4, generator=torch.Generator().manual_seed(5), cached=cached)
        for cached in (True, False)
    )
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_priors_of_different_kinds_go_together_and_survive_json() -> None:
    counted = Unigram(BOTTOM, [TOP]).fit(torch.ones(5, 1, 2, 2, dtype=torch.int64))
    prior = LevelsPrior([Uniform(TOP), counted])
    twin = LevelsPrior(**json.loads(json.dumps(prior.spec())))
    twin.load_state_dict(prior.state_dict())
    assert twin.spec() == prior.spec()
    codes = (torch.zeros(1, 1, 1, 1, dtype=torch.int64), torch.ones(1, 1, 2, 2).long())
    # By hand: one of 3, and four codes that were seen 5 times of 5, one added to each count.
    assert twin.nats(codes).tolist() == pytest.approx([math.log(3) - 4 * math.log(6 / 7)])


def test_levels_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ConfigError, match="from the top down"):
        LevelsPrior([Uniform(BOTTOM, [TOP]), Uniform(TOP)])
    with pytest.raises(ConfigError, match="at least one"):
        LevelsPrior([])


def test_a_grid_for_each_level_is_expected() -> None:
    prior = three_levels()
    codes = prior.sample(2)
    with pytest.raises(ShapeError, match="one for each of 3 levels"):
        prior.nats(codes[:2])
    with pytest.raises(ShapeError, match="one for each of 3 levels"):
        prior.loss(codes, [None])
    with pytest.raises(ShapeError, match="got Tensor"):
        prior.nats(codes[0])  # type: ignore[arg-type]


def test_a_level_has_a_plain_form() -> None:
    expected = Level((4, 6), (8, 8))
    assert as_level(expected) == as_level([[4, 6], [8, 8]]) == expected
    assert as_level({"grid": [4, 6], "code_sizes": [8, 8]}) == expected
    assert (expected.num_codebooks, expected.num_codes, expected.offsets) == (2, 48, (0, 8))


def test_a_walk_goes_row_by_row_codebook_fastest_and_ends() -> None:
    stepper = Uniform(((2, 2), (4, 3))).stepper(2)
    places = []
    while not stepper.done:
        places.append(stepper.place)
        stepper.push(torch.zeros(2, dtype=torch.int64))
    # By hand.
    assert places == [
        (0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1),
    ]  # fmt: skip
    for more in (stepper.logits, stepper.probabilities):
        with pytest.raises(ConfigError, match="all 8 codes"):
            more()
    with pytest.raises(ConfigError, match="all 8 codes"):
        stepper.push(torch.zeros(2, dtype=torch.int64))


@pytest.mark.parametrize("prior", [Uniform, Unigram, Autoregressive])
def test_codes_that_do_not_fit_are_not_pushed(prior: type[Uniform]) -> None:
    stepper = prior(((2, 2), (4, 3))).stepper(2)
    before = stepper.probabilities()
    with pytest.raises(DataError, match=r"in 0\.\.3, got 0\.\.4"):
        stepper.push(torch.tensor([0, 4]))
    with pytest.raises(ShapeError, match=r"a code for each grid, \(2,\)"):
        stepper.push(torch.tensor([0]))
    with pytest.raises(ShapeError, match="whole numbers"):
        stepper.push(torch.tensor([0.0, 1.0]))
    assert stepper.position == 0
    assert torch.equal(stepper.probabilities(), before)


def test_a_chance_decides_a_code() -> None:
    logits = torch.tensor([0.5, 0.25, 0.25]).log()
    chances = torch.tensor([0.0, 0.49, 0.51, 0.74, 0.76, 1.0], dtype=torch.float64)
    # By hand: the sums pass 0.5, 0.75 and 1.
    assert draw(logits, chances, 1.0).tolist() == [0, 0, 1, 1, 2, 2]
    assert draw(logits, chances, 0).tolist() == [0] * 6
    # Halves make the shares 4, 1 and 1 of 6.
    assert draw(logits, chances, 0.5).tolist() == [0, 0, 0, 1, 1, 2]
