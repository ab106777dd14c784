"""The laws that every registered prior keeps; particulars are elsewhere."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import smalti.priors
from smalti.errors import ConfigError, DataError, ShapeError
from smalti.priors import Level, Prior, build_prior, priors

NAMES = priors.names()
# Codebooks of different sizes, and grids of which the lower is no multiple of the upper.
TOP, MIDDLE, BOTTOM = Level((1, 2), (3,)), Level((2, 3), (2, 4)), Level((3, 4), (5, 3, 2))
# So few grids that all can be listed: 2 * 3 * 2 * 3, under 2 * 2 of the level above.
TINY, TINY_ABOVE = Level((1, 2), (2, 3)), Level((2, 1), (2,))


def learned(name: str, level: Level, above: tuple[Level, ...] = (), **changed: Any) -> Prior:
    """A prior that is far from uniform, as if it had learned something."""
    torch.manual_seed(1)
    prior = build_prior(name, level=level, above=above, **{**priors.get(name).example, **changed})
    with torch.no_grad():
        for parameter in prior.parameters():
            parameter.add_(0.5 * torch.randn(parameter.shape))
    fit = getattr(prior, "fit", None)
    if fit is not None:
        # Low codes are seen more often, differently so from place to place.
        fit(torch.minimum(grids(level, 40, seed=3), grids(level, 40, seed=4)))
    return prior.eval()


def grids(level: Level, count: int, seed: int = 2) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    books = [
        torch.randint(size, (count, *level.grid), generator=generator) for size in level.code_sizes
    ]
    return torch.stack(books, dim=-1)


def case(name: str, count: int = 5, **changed: Any) -> tuple[Prior, Tensor, tuple[Tensor, ...]]:
    prior = learned(name, BOTTOM, (TOP, MIDDLE), **changed)
    return prior, grids(BOTTOM, count), (grids(TOP, count), grids(MIDDLE, count))


def every_grid(level: Level) -> Tensor:
    ranges = [range(size) for size in level.code_sizes] * math.prod(level.grid)
    return torch.tensor(list(itertools.product(*ranges))).view(-1, *level.grid, level.num_codebooks)


def walked(prior: Prior, codes: Tensor, above: tuple[Tensor, ...]) -> list[tuple[Tensor, Tensor]]:
    """Logits and probabilities at each step of a coder that knows the codes."""
    stepper = prior.stepper(len(codes), above)
    found = []
    for step in codes.flatten(1).T:
        found.append((stepper.logits().clone(), stepper.probabilities().clone()))
        stepper.push(step)
    assert stepper.done
    return found


def assert_same_bits(
    one: list[tuple[Tensor, Tensor]], other: list[tuple[Tensor, Tensor]], rows: slice
) -> None:
    for ours, theirs in zip(one, other, strict=True):
        for mine, yours in zip(ours, theirs, strict=True):
            assert torch.equal(mine[rows], yours)


def test_the_registry_holds_the_whole_family() -> None:
    assert {"uniform", "unigram", "autoregressive"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_class_can_be_imported_from_the_package(name: str) -> None:
    kind = priors.get(name)
    assert getattr(smalti.priors, kind.__name__) is kind


@pytest.mark.parametrize("name", NAMES)
def test_the_probabilities_of_all_grids_add_up_to_one(name: str) -> None:
    every = every_grid(TINY)
    assert len(every) == 36
    alone = learned(name, TINY).nats(every)
    assert alone.shape == (36,)
    assert alone.dtype == torch.float64
    assert float((-alone).exp().sum()) == pytest.approx(1, abs=1e-6)
    below = learned(name, TINY, (TINY_ABOVE,))
    for above in every_grid(TINY_ABOVE):
        nats = below.nats(every, (above.expand(36, -1, -1, -1),))
        assert float((-nats).exp().sum()) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_nats_are_those_of_the_codes_and_the_loss_is_their_mean(name: str) -> None:
    prior, codes, above = case(name)
    each = prior.code_nats(codes, above)
    assert each.shape == codes.shape
    assert bool((each > 0).all())
    nats = prior.nats(codes, above)
    torch.testing.assert_close(nats, each.sum(dim=(1, 2, 3)))
    loss = prior.loss(codes, above).detach()
    assert loss.dtype == torch.float32
    assert float(loss) == pytest.approx(float(nats.mean()) / BOTTOM.num_codes, rel=1e-5)
    assert torch.equal(prior(codes, above), loss)


@pytest.mark.parametrize("name", NAMES)
def test_assignments_to_one_codeword_are_codes(name: str) -> None:
    prior, codes, above = case(name)
    one_hot = nn.functional.one_hot(codes, max(BOTTOM.code_sizes)).float()
    torch.testing.assert_close(prior.loss(codes, above, one_hot), prior.loss(codes, above))


@pytest.mark.parametrize("name", NAMES)
def test_shared_assignments_give_the_cross_entropy(name: str) -> None:
    prior, codes, above = case(name)
    samples = torch.stack([grids(BOTTOM, 5, seed=seed) for seed in range(8)], dim=-1)
    shares = nn.functional.one_hot(samples, max(BOTTOM.code_sizes)).float().mean(dim=-2)
    # The walk gives the probabilities once more, by its own way.
    flat = shares.flatten(1, 3)
    total = 0.0
    for step, (_, chances) in enumerate(walked(prior, codes, above)):
        total -= float((flat[:, step, : chances.shape[1]] * chances.log()).sum())
    expected = total / codes.numel()
    assert float(prior.loss(codes, above, shares).detach()) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_samples_are_grids_in_range_and_follow_the_seed(name: str) -> None:
    prior, _, above = case(name, count=30)
    state = {key: tensor.clone() for key, tensor in prior.state_dict().items()}
    draws = [
        prior.sample(30, above, generator=torch.Generator().manual_seed(seed)) for seed in (7, 7, 8)
    ]
    assert draws[0].shape == (30, 3, 4, 3)
    assert draws[0].dtype == torch.int64
    for book, size in enumerate(BOTTOM.code_sizes):
        assert set(draws[0][..., book].unique().tolist()) == set(range(size))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    for key, tensor in prior.state_dict().items():
        assert torch.equal(tensor, state[key])


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_grids_are_drawn_as_often_as_they_are_probable(name: str, cached: bool) -> None:
    prior = learned(name, TINY, (TINY_ABOVE,))
    count = 20000
    above = torch.tensor([1, 0]).view(1, 2, 1, 1)
    drawn = prior.sample(
        count,
        (above.expand(count, -1, -1, -1),),
        generator=torch.Generator().manual_seed(5),
        cached=cached,
    )
    every = every_grid(TINY)
    expected = (-prior.nats(every, (above.expand(36, -1, -1, -1),))).exp()
    places = torch.tensor([18, 6, 3, 1])  # a grid's number in the list of all
    seen = torch.bincount((drawn.flatten(1) * places).sum(dim=1), minlength=36) / count
    # Five standard errors of a count: wrong once in a million.
    assert bool(((seen - expected).abs() < 5 * (expected / count).sqrt()).all())


@pytest.mark.parametrize("name", NAMES)
def test_a_low_temperature_takes_the_likeliest_codes(name: str) -> None:
    prior, _, above = case(name)
    cold = prior.sample(5, above, temperature=0)
    assert torch.equal(cold, prior.sample(5, above, temperature=0))
    for step, (logits, _) in zip(cold.flatten(1).T, walked(prior, cold, above), strict=True):
        best = logits.max(dim=1).values
        assert bool((logits.gather(1, step[:, None])[:, 0] >= best - 1e-2).all())


@pytest.mark.parametrize("name", NAMES)
def test_a_walk_gives_the_probability_of_the_grid(name: str) -> None:
    prior, codes, above = case(name)
    total = torch.zeros(5, dtype=torch.float64)
    sizes = itertools.cycle(BOTTOM.code_sizes)
    for step, (logits, chances) in zip(
        codes.flatten(1).T, walked(prior, codes, above), strict=True
    ):
        assert chances.shape == logits.shape == (5, next(sizes))
        assert chances.dtype == torch.float64
        assert bool((chances > 0).all())
        torch.testing.assert_close(chances.sum(dim=1), torch.ones(5, dtype=torch.float64))
        torch.testing.assert_close(chances, logits.double().softmax(dim=1), atol=1e-6, rtol=1e-4)
        total -= chances.gather(1, step[:, None])[:, 0].log()
    torch.testing.assert_close(total, prior.nats(codes, above), atol=2e-2, rtol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_who_reads_the_codes_one_by_one_computes_the_same_bits(name: str) -> None:
    prior, codes, above = case(name)
    known = walked(prior, codes, above)
    stepper = prior.stepper(5, above)
    arrived: list[Tensor] = []
    for logits, chances in known:
        # A reader asks in another order, more than once, and knows the past alone.
        assert torch.equal(stepper.probabilities(), chances)
        assert torch.equal(stepper.logits(), logits)
        assert torch.equal(stepper.logits(), logits)
        arrived.append(codes.flatten(1)[:, len(arrived)].int())
        stepper.push(arrived[-1])
    # Nor does it matter what nobody asked for.
    silent = prior.stepper(5, above)
    for step in codes.flatten(1).T[:-1]:
        silent.push(step)
    assert torch.equal(silent.logits(), known[-1][0])


@pytest.mark.parametrize("name", NAMES)
def test_the_bits_of_a_walk_depend_neither_on_the_batch_nor_on_the_threads(name: str) -> None:
    prior = learned(name, MIDDLE, (TOP,))
    codes, above = grids(MIDDLE, 19), (grids(TOP, 19),)
    together = walked(prior, codes, above)
    for rows in (slice(0, 1), slice(18, 19), slice(3, 6)):
        apart = walked(prior, codes[rows], tuple(item[rows] for item in above))
        assert_same_bits(together, apart, rows)
    for threads in (1, 2):
        torch.set_num_threads(threads)
        assert_same_bits(together, walked(prior, codes, above), slice(None))


@pytest.mark.parametrize("name", NAMES)
def test_settings_and_state_make_an_equal_twin(name: str) -> None:
    prior, codes, above = case(name)
    spec = json.loads(json.dumps(prior.spec()))
    twin = build_prior(spec)
    twin.load_state_dict(prior.state_dict())
    assert twin.spec() == prior.spec() == spec
    assert (twin.level, twin.above) == (BOTTOM, (TOP, MIDDLE))
    assert torch.equal(twin.nats(codes, above), prior.nats(codes, above))
    assert_same_bits(walked(prior, codes, above), walked(twin, codes, above), slice(None))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_but_the_loss_depends_on_the_mode(name: str) -> None:
    dropping = {"dropout": 0.5} if name == "autoregressive" else {}
    prior, codes, above = case(name, **dropping)
    seeded = torch.Generator().manual_seed(1)
    expected = prior.nats(codes, above), prior.sample(5, above, generator=seeded)
    prior.train()
    seeded.manual_seed(1)
    found = prior.nats(codes, above), prior.sample(5, above, generator=seeded)
    assert all(torch.equal(one, other) for one, other in zip(expected, found, strict=True))
    assert all(part.training for part in prior.modules())


@pytest.mark.parametrize("name", NAMES)
def test_codes_of_any_whole_type_and_no_codes_at_all_are_fine(name: str) -> None:
    prior, codes, above = case(name)
    for dtype in (torch.uint8, torch.int32):
        narrow = tuple(item.to(dtype) for item in above)
        assert torch.equal(prior.nats(codes.to(dtype), narrow), prior.nats(codes, above))
    assert prior.nats(codes[:0], tuple(item[:0] for item in above)).shape == (0,)


@pytest.mark.parametrize("name", NAMES)
def test_what_can_not_be_used_is_refused(name: str) -> None:
    prior, codes, above = case(name)
    with pytest.raises(ShapeError, match=r"expected codes \(batch, 3, 4, 3\)"):
        prior.nats(codes[:, :2], above)
    with pytest.raises(ShapeError, match="expected codes"):
        prior.loss(codes[0], above)
    with pytest.raises(ShapeError, match="whole numbers"):
        prior.loss(codes.float(), above)
    with pytest.raises(DataError, match=r"codebook 2 in 0\.\.1"):
        prior.nats(codes + torch.tensor([0, 0, 5]), above)
    with pytest.raises(ShapeError, match="the codes of 2 levels above"):
        prior.nats(codes)
    with pytest.raises(ShapeError, match="expected 4 grids of each level above"):
        prior.sample(4, above)
    with pytest.raises(ConfigError, match="count"):
        prior.sample(0, above)
    with pytest.raises(ConfigError, match="temperature"):
        prior.sample(5, above, temperature=-1.0)


@pytest.mark.parametrize("name", NAMES)
def test_assignments_that_are_no_shares_are_refused(name: str) -> None:
    prior, codes, above = case(name)
    shares = nn.functional.one_hot(codes, 5).float()
    with pytest.raises(ShapeError, match="real-valued assignments"):
        prior.loss(codes, above, shares[..., :4])
    with pytest.raises(ShapeError, match="real-valued assignments"):
        prior.loss(codes, above, shares.long())
    for bad in (2 * shares, shares * torch.nan, torch.roll(shares, 3, dims=-1)):
        # Rolled, a share lies beyond the end of a small codebook.
        with pytest.raises(DataError, match="add up to 1"):
            prior.loss(codes, above, bad)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "bad",
    [
        {"level": ((2, 2), (1,))},
        {"level": ((2, 2), ())},
        {"level": ((0, 2), (4,))},
        {"level": ((2, 2, 2), (4,))},
        {"level": 4},
        {"level": ((2, 2), 4)},
        {"above": ((2, 2), (4,))},
        {"above": 3},
    ],
)
def test_levels_that_can_not_be_are_refused(name: str, bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        build_prior(name, **{"level": TOP, **priors.get(name).example, **bad})
