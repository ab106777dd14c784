"""What is particular to Autoregressive; the common contract is in tests/contracts."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from smalti.errors import ConfigError, DataError
from smalti.priors import Autoregressive, Level, Prior, Uniform, Unigram

Array = np.ndarray[Any, np.dtype[np.float64]]


def shaken(prior: Autoregressive) -> Autoregressive:
    """Every parameter matters, none is zero."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in prior.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return prior.eval()


def by_numpy(prior: Autoregressive, codes: Array, above: list[Array]) -> float:
    """The nats of one grid, from its definition: code by code, in float64."""
    state = {name: tensor.double().numpy() for name, tensor in prior.state_dict().items()}
    (height, width), sizes = prior.level
    offsets = np.cumsum([0, *sizes])

    def linear(name: str, x: Array) -> Array:
        return np.asarray(x @ state[f"{name}.weight"].T + state[f"{name}.bias"])

    def norm(name: str, x: Array) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        centred = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return np.asarray(centred * state[f"{name}.weight"] + state[f"{name}.bias"])

    inputs, total = [], 0.0
    before = state["start"][0]
    for row, column, book in np.ndindex(height, width, len(sizes)):
        x = before + state["rows.weight"][row] + state["columns.weight"][column]
        x = x + state["books.weight"][book]
        for number, (level, grid) in enumerate(zip(prior.above, above, strict=True)):
            place = row * level.grid[0] // height, column * level.grid[1] // width
            starts = np.cumsum([0, *level.code_sizes])[:-1]
            x = x + state[f"codes_above.{number}.weight"][grid[place] + starts].sum(0)
        inputs.append(x)
        current = np.stack(inputs)
        length, heads = len(current), prior.heads
        hidden = np.tril(np.ones((length, length))) == 0
        for layer in range(prior.depth):
            name = f"blocks.{layer}"
            own = f"transformer.{name}.attention"
            views = linear(f"{own}.inward", norm(f"{own}.norm", current))
            query, key, value = views.reshape(length, 3, heads, -1).transpose(1, 2, 0, 3)
            scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
            weights = np.exp(np.where(hidden, -np.inf, scores))
            weights = weights / weights.sum(-1, keepdims=True)
            seen = (weights @ value).transpose(1, 0, 2).reshape(length, -1)
            current = current + linear(f"{own}.outward", seen)
            own = f"transformer.{name}.dense"
            wide = linear(f"{own}.widen", norm(f"{own}.norm", current))
            wide = wide * 0.5 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
            current = current + linear(f"{own}.narrow", wide)
        logits = linear("head", norm("transformer.norm", current))[-1]
        logits = logits[offsets[book] : offsets[book + 1]]
        code = codes[row, column, book]
        total += math.log(np.exp(logits).sum()) - logits[code]
        before = state["codes.weight"][offsets[book] + code]
    return total


def blobs(count: int, generator: torch.Generator, level: Level) -> Tensor:
    """Codes that mostly repeat their left neighbour; new ones differ in taste from row to row."""
    height, width = level.grid
    books = []
    for size in level.code_sizes:
        fresh = torch.randint(size, (count, height, width), generator=generator)
        taste = torch.arange(height)[:, None] % size
        keen = torch.rand(count, height, width, generator=generator) < 0.5
        codes = torch.where(keen, taste.expand(count, height, width), fresh)
        same = torch.rand(count, height, width, generator=generator) < 0.85
        for column in range(1, width):
            repeated = codes[:, :, column - 1]
            codes[:, :, column] = torch.where(same[:, :, column], repeated, codes[:, :, column])
        books.append(codes)
    return torch.stack(books, dim=-1)


def train(prior: Prior, steps: int, batch: Any) -> None:
    optimizer = torch.optim.Adam(prior.parameters(), lr=3e-3)
    prior.train()
    for _ in range(steps):
        optimizer.zero_grad()
        prior.loss(*batch()).backward()
        optimizer.step()


def mean_nats(prior: Prior, codes: Tensor, *above: Tensor) -> float:
    return float(prior.nats(codes, above).mean()) / prior.level.num_codes


def test_nats_are_those_of_numpy() -> None:
    above = [Level((1, 2), (3,)), Level((2, 3), (2, 4))]
    prior = shaken(Autoregressive(((3, 4), (5, 3)), above, dim=8, depth=2, heads=2, ratio=3))
    generator = torch.Generator().manual_seed(2)
    grids = [
        torch.stack(
            [torch.randint(size, (2, *level.grid), generator=generator) for size in sizes], dim=-1
        )
        for level in (*above, prior.level)
        for sizes in [level.code_sizes]
    ]
    expected = [
        by_numpy(prior, grids[-1][item].numpy(), [grid[item].numpy() for grid in grids[:-1]])
        for item in range(2)
    ]
    assert prior.nats(grids[-1], grids[:-1]).tolist() == pytest.approx(expected, rel=1e-5)


def test_no_code_is_predicted_from_itself_or_later_ones() -> None:
    # Twelve codes that all differ, so that each has a vector of its own.
    prior = shaken(Autoregressive(((3, 2), (12, 12)), dim=8, depth=2, heads=2))
    codes = torch.arange(12).view(1, 3, 2, 2)
    logits = torch.stack(prior.logits(codes), dim=-2).view(12, 12)
    owners = codes.flatten() + torch.tensor([0, 12]).repeat(6)
    for step in range(12):
        (gradient,) = torch.autograd.grad(
            logits[step].square().sum(), prior.codes.weight, retain_graph=True
        )
        reached = gradient.abs().sum(dim=1)[owners] > 0
        # Exactly zero from its own place on, not merely small.
        assert reached.tolist() == [other < step for other in range(12)]


def test_a_window_bounds_what_a_code_is_predicted_from() -> None:
    prior = shaken(Autoregressive(((3, 4), (12,)), dim=8, depth=1, heads=2, window=3))
    codes = torch.arange(12).view(1, 3, 4, 1)
    (logits,) = prior.logits(codes)
    for step, row in enumerate(logits.view(12, 12)):
        (gradient,) = torch.autograd.grad(row.square().sum(), prior.codes.weight, retain_graph=True)
        reached = (gradient.abs().sum(dim=1) > 0).tolist()
        assert reached == [step - 3 <= other < step for other in range(12)]


def test_a_place_is_conditioned_on_the_codes_that_lie_over_it() -> None:
    above = Level((2, 2), (4,))
    prior = shaken(Autoregressive(((4, 4), (3,)), [above], dim=8, depth=1, heads=2, window=1))
    codes = torch.zeros(1, 4, 4, 1, dtype=torch.int64)
    one, other = torch.zeros(2, 1, 2, 2, 1, dtype=torch.int64)
    other[0, 1, 0] = 3
    (before,), (after,) = prior.logits(codes, [one]), prior.logits(codes, [other])
    changed = (before != after).any(dim=-1)[0]
    # With a window of one nothing else can bring the news.
    assert changed.tolist() == [
        [row >= 2 and column < 2 for column in range(4)] for row in range(4)
    ]


@pytest.mark.parametrize("window", [None, 7])
def test_the_same_codes_come_with_and_without_the_cache(window: int | None) -> None:
    above = Level((2, 2), (4,))
    prior = shaken(
        Autoregressive(((4, 4), (6, 3)), [above], dim=16, depth=2, heads=2, window=window)
    )
    given = torch.randint(4, (9, 2, 2, 1), generator=torch.Generator().manual_seed(1))
    for seed in range(3):
        drawn = [
            prior.sample(9, [given], generator=torch.Generator().manual_seed(seed), cached=cached)
            for cached in (True, False)
        ]
        assert torch.equal(*drawn)


def test_a_window_and_steps_agree_on_nats() -> None:
    prior = shaken(Autoregressive(((4, 4), (6, 3)), dim=16, depth=2, heads=2, window=5))
    codes = prior.sample(3, generator=torch.Generator().manual_seed(1))
    stepper = prior.stepper(3)
    total = torch.zeros(3, dtype=torch.float64)
    for step in codes.flatten(1).T:
        total -= stepper.probabilities().gather(1, step[:, None])[:, 0].log()
        stepper.push(step)
    torch.testing.assert_close(total, prior.nats(codes), atol=1e-2, rtol=1e-3)


def test_it_learns_what_counting_can_not() -> None:
    generator = torch.Generator().manual_seed(3)
    level = Level((4, 5), (8, 5))
    seen, unseen = blobs(2000, generator, level), blobs(300, generator, level)
    torch.manual_seed(0)
    prior = Autoregressive(level, dim=32, depth=2, heads=2)
    train(prior, 200, lambda: (seen[torch.randint(2000, (16,), generator=generator)],))
    learned = mean_nats(prior, unseen)
    counted = mean_nats(Unigram(level).fit(seen), unseen)
    uniform = mean_nats(Uniform(level), unseen)
    # The three are far apart, not by a lucky seed.
    assert learned < 0.75 * counted
    assert counted < 0.95 * uniform


def test_it_learns_what_the_level_above_tells() -> None:
    generator = torch.Generator().manual_seed(4)
    top, bottom = Level((2, 2), (6,)), Level((4, 4), (6,))

    def batch(count: int = 32) -> tuple[Tensor, list[Tensor]]:
        above = torch.randint(6, (count, 2, 2, 1), generator=generator)
        over = above.repeat_interleave(2, dim=1).repeat_interleave(2, dim=2)
        fresh = torch.randint(6, (count, 4, 4, 1), generator=generator)
        told = torch.rand(count, 4, 4, 1, generator=generator) < 0.9
        return torch.where(told, over, fresh), [above]

    torch.manual_seed(0)
    prior = Autoregressive(bottom, [top], dim=32, depth=1, heads=2)
    train(prior, 150, batch)
    codes, above = batch(200)
    # By hand: a code is the one above with 0.9 + 0.1 / 6, each other with 0.1 / 6.
    alike = 0.9 + 0.1 / 6
    entropy = -alike * math.log(alike) - 5 * (0.1 / 6) * math.log(0.1 / 6)
    assert mean_nats(prior, codes, *above) == pytest.approx(entropy, abs=0.15)
    assert mean_nats(prior, codes, *above) < 0.5 * math.log(6)


def test_it_learns_the_shares_of_soft_labels() -> None:
    torch.manual_seed(0)
    prior = Autoregressive(((1, 2), (4,)), dim=16, depth=1, heads=2)
    samples = torch.tensor([[[[0, 0, 0, 1]], [[2, 2, 3, 3]]]])
    shares = one_hot(samples, 4).float().mean(dim=-2).expand(8, -1, -1, -1, -1)
    codes = samples[..., 0].expand(8, 1, 2, 1)
    train(prior, 150, lambda: (codes, (), shares))
    (logits,) = prior.logits(codes[:1])
    expected = torch.tensor([[0.75, 0.25, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])
    torch.testing.assert_close(logits.softmax(dim=-1)[0, 0], expected, atol=0.03, rtol=0)
    # By hand: no loss can be below the entropy of the labels.
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25) + math.log(0.5)) / 2
    assert entropy <= float(prior.loss(codes, (), shares).detach()) < entropy + 0.05


def test_gradients_reach_the_shares_and_every_parameter() -> None:
    above = Level((1, 1), (3,))
    prior = Autoregressive(((2, 2), (4, 2)), [above], dim=8, depth=1, heads=2)
    codes = prior.sample(3, [torch.zeros(3, 1, 1, 1, dtype=torch.int64)])
    samples = torch.stack([codes, torch.zeros_like(codes)], dim=-1)
    shares = one_hot(samples, 4).float().mean(dim=-2).requires_grad_()
    prior.loss(codes, [torch.zeros(3, 1, 1, 1, dtype=torch.int64)], shares).backward()
    assert shares.grad is not None
    assert bool((shares.grad[..., 0, :] != 0).all())
    for name, parameter in prior.named_parameters():
        assert parameter.grad is not None, name
        assert bool((parameter.grad != 0).any()), name


def test_it_begins_close_to_the_uniform_prior() -> None:
    torch.manual_seed(0)
    prior = Autoregressive(((4, 4), (256,)))
    codes = torch.randint(256, (4, 4, 4, 1))
    assert mean_nats(prior, codes) == pytest.approx(math.log(256), abs=0.1)


def test_a_prior_that_has_diverged_codes_nothing() -> None:
    prior = Autoregressive(((2, 2), (4,)), dim=8, depth=1, heads=2)
    with torch.no_grad():
        prior.head.weight[0, 0] = torch.nan
    with pytest.raises(DataError, match=r"head\.weight is not finite"):
        prior.stepper(1)


@pytest.mark.parametrize(
    "bad", [{"dim": 0}, {"heads": 3}, {"depth": 0}, {"dropout": 1.0}, {"window": 0}, {"ratio": 0}]
)
def test_impossible_settings_are_refused_at_construction(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Autoregressive(**{"level": ((2, 2), (4,)), "dim": 8, "depth": 1, **bad})


@pytest.mark.slow
def test_the_cache_makes_sampling_several_times_faster() -> None:
    prior = shaken(Autoregressive(((8, 8), (64,) * 5), dim=64, depth=4, heads=4))

    def seconds(cached: bool) -> tuple[float, Tensor]:
        # Of the processor: other programs do not count.
        began = time.process_time()
        drawn = prior.sample(4, generator=torch.Generator().manual_seed(0), cached=cached)
        return time.process_time() - began, drawn

    torch.set_num_threads(1)
    seconds(True)
    fast, drawn = min((seconds(True) for _ in range(3)), key=lambda found: found[0])
    slow, drawn_slowly = seconds(False)
    assert torch.equal(drawn, drawn_slowly)
    assert slow > 3 * fast
