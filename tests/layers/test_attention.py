"""The causal transformer, against NumPy in float64 and against itself step by step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from smalti.errors import ConfigError, ShapeError
from smalti.layers.attention import CausalTransformer

Array = np.ndarray[Any, np.dtype[np.float64]]
KINDS: dict[str, dict[str, Any]] = {
    "full": {},
    "local": {"window": 3},
    "context": {"context_dim": 6},
    "local with context": {"window": 4, "context_dim": 6},
}


def layers(**settings: Any) -> CausalTransformer:
    torch.manual_seed(1)
    made = CausalTransformer(**{"dim": 8, "depth": 2, "heads": 2, "ratio": 3, **settings})
    with torch.no_grad():
        for parameter in made.parameters():
            # Norms and biases too, so that a forgotten one shows.
            parameter.add_(0.3 * torch.randn(parameter.shape))
    return made.eval()


def inputs(made: CausalTransformer, batch: int, length: int) -> tuple[Tensor, Tensor | None]:
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(batch, length, made.dim, generator=generator)
    if made.context_dim is None:
        return x, None
    return x, torch.randn(batch, 5, made.context_dim, generator=generator)


def by_numpy(made: CausalTransformer, x: Tensor, context: Tensor | None) -> Array:
    """The whole transformer written out, position by position."""
    state = {name: tensor.double().numpy() for name, tensor in made.state_dict().items()}

    def norm(name: str, values: Array) -> Array:
        centred = values - values.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return np.asarray(scaled * state[f"{name}.weight"] + state[f"{name}.bias"])

    def dense(name: str, values: Array) -> Array:
        return np.asarray(values @ state[f"{name}.weight"].T + state[f"{name}.bias"])

    def gelu(values: Array) -> Array:
        return np.asarray(values * 0.5 * (1 + np.vectorize(math.erf)(values / math.sqrt(2))))

    def attend(queries: Array, keys: Array, values: Array, window: int | None) -> Array:
        width = made.dim // made.heads
        out = np.zeros_like(queries)
        for item in range(queries.shape[0]):
            for head in range(made.heads):
                own = slice(head * width, (head + 1) * width)
                for place in range(queries.shape[1]):
                    first, last = 0, keys.shape[1]
                    if window is not None:
                        first, last = max(0, place + 1 - window), place + 1
                    scores = keys[item, first:last, own] @ queries[item, place, own]
                    weights = np.exp(scores / math.sqrt(width))
                    weights = weights / weights.sum()
                    out[item, place, own] = weights @ values[item, first:last, own]
        return out

    current = x.double().numpy()
    length = x.shape[1]
    for layer in range(made.depth):
        name = f"blocks.{layer}.attention"
        query, key, value = np.split(
            dense(f"{name}.inward", norm(f"{name}.norm", current)), 3, axis=-1
        )
        seen = attend(query, key, value, made.window or length)
        current = current + dense(f"{name}.outward", seen)
        if context is not None:
            name = f"blocks.{layer}.cross"
            query = dense(f"{name}.queries", norm(f"{name}.norm", current))
            read = dense(f"{name}.inward", context.double().numpy())
            key, value = np.split(read, 2, axis=-1)
            current = current + dense(f"{name}.outward", attend(query, key, value, None))
        name = f"blocks.{layer}.dense"
        hidden = gelu(dense(f"{name}.widen", norm(f"{name}.norm", current)))
        current = current + dense(f"{name}.narrow", hidden)
    return norm("norm", current)


def sees(made: CausalTransformer, length: int) -> list[set[int]]:
    """For each position of the output, the inputs that its gradient reaches."""
    x = torch.randn(1, length, made.dim, generator=torch.Generator().manual_seed(3))
    x.requires_grad_()
    out = made(x)
    seen = []
    for place in range(length):
        (gradient,) = torch.autograd.grad(out[0, place].square().sum(), x, retain_graph=True)
        seen.append({int(other) for other in gradient[0].abs().sum(dim=-1).nonzero()})
    return seen


@pytest.mark.parametrize("length", [1, 3, 4, 11])
@pytest.mark.parametrize("kind", KINDS)
def test_the_outputs_are_those_of_numpy(kind: str, length: int) -> None:
    made = layers(**KINDS[kind])
    x, context = inputs(made, 2, length)
    expected = torch.from_numpy(by_numpy(made, x, context)).float()
    torch.testing.assert_close(made(x, context), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_steps_with_the_cache_give_what_all_positions_at_once_give(kind: str) -> None:
    # Longer than the room that a cache begins with.
    made = layers(**KINDS[kind])
    x, context = inputs(made, 3, 70)
    whole = made(x, context)
    for length in (None, 70):
        cache = made.new_cache(3, context, length=length)
        steps = [made.step(item, cache) for item in x.split(1, dim=1)]
        torch.testing.assert_close(torch.cat(steps, dim=1), whole, atol=1e-5, rtol=1e-5)


def test_a_window_bounds_the_cache() -> None:
    made = layers(window=4)
    cache = made.new_cache(2)
    for item in inputs(made, 2, 30)[0].split(1, dim=1):
        made.step(item, cache)
        assert {len(held[0, 0]) for held in (*cache.keys, *cache.values)} == {4}


def test_no_position_sees_a_later_one() -> None:
    # Gradients are exactly zero, not merely small.
    assert sees(layers(), 6) == [set(range(place + 1)) for place in range(6)]


@pytest.mark.parametrize("window", [1, 2, 3, 5])
def test_a_position_sees_as_many_positions_as_the_window_has(window: int) -> None:
    seen = sees(layers(depth=1, window=window), 11)
    assert seen == [set(range(max(0, place + 1 - window), place + 1)) for place in range(11)]


def test_each_layer_lets_a_window_reach_farther() -> None:
    # By hand: two layers of window 3 reach 2 + 2 positions back.
    seen = sees(layers(depth=2, window=3), 11)
    assert seen == [set(range(max(0, place - 4), place + 1)) for place in range(11)]


def test_a_window_as_long_as_the_sequence_is_full_attention() -> None:
    full, local = layers(), layers(window=9)
    x, _ = inputs(full, 2, 9)
    assert torch.equal(full(x), local(x))


def test_steps_drop_nothing_in_training() -> None:
    made = layers(dropout=0.5)
    x, _ = inputs(made, 2, 4)
    expected = made(x)
    made.train()
    cache = made.new_cache(2)
    steps = torch.cat([made.step(item, cache) for item in x.split(1, dim=1)], dim=1)
    torch.testing.assert_close(steps, expected, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(made(x), expected, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_learns(kind: str) -> None:
    made = layers(**KINDS[kind]).train()
    x, context = inputs(made, 2, 9)
    (made(x, context) * torch.randn(2, 9, made.dim)).sum().backward()
    for name, parameter in made.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize(
    "bad",
    [
        {"heads": 3},
        {"depth": 0},
        {"dim": 0},
        {"window": 0},
        {"dropout": 1.0},
        {"context_dim": 0},
        {"ratio": 1.5},
    ],
)
def test_impossible_settings_are_refused_at_construction(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        CausalTransformer(**{"dim": 8, "depth": 1, "heads": 2, **bad})


def test_wrong_shapes_are_refused() -> None:
    made, crossing = layers(), layers(context_dim=6)
    x, context = inputs(crossing, 2, 5)
    with pytest.raises(ShapeError, match=r"expected \(batch, length, 8\)"):
        made(torch.zeros(2, 5, 7))
    with pytest.raises(ConfigError, match="take no context"):
        made(x, context)
    with pytest.raises(ShapeError, match="expected a context"):
        crossing(x)
    with pytest.raises(ShapeError, match="expected a context"):
        crossing.new_cache(3, context)
    with pytest.raises(ShapeError, match="one position a sequence"):
        made.step(x, made.new_cache(2))


@pytest.mark.parametrize("depth", [1, 2])
def test_a_first_position_that_is_known_before_gives_what_a_step_gives(depth: int) -> None:
    layers = CausalTransformer(dim=16, depth=depth, heads=4, context_dim=16).eval()
    first, second, context = torch.randn(1, 16), torch.randn(3, 16), torch.randn(3, 5, 16)
    lean = layers.lean()
    stepping, beginning = (layers.new_cache(3, context, length=2) for _ in range(2))
    with torch.no_grad():
        expected = [lean.step(x, stepping) for x in (first.repeat(3, 1), second)]
        found = [lean.begin(lean.beginning(first), beginning), lean.step(second, beginning)]
    torch.testing.assert_close(found, expected)
