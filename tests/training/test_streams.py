"""The order of batches depends on the seed and the epoch, and on nothing that happens between."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from smalti.errors import DataError
from smalti.training.randomness import (
    CPU,
    apart,
    packed_states,
    random_states,
    seed_all,
    seeded_states,
    set_random_states,
    unpacked_states,
)
from smalti.training.streams import BatchStream


class Draws:
    """Batches that are random in every way there is."""

    def __init__(self, count: int = 3) -> None:
        self.count = count

    def batches(self, epoch: int, generator: torch.Generator) -> Iterable[Tensor]:
        """Each of a permutation, and of all generators."""
        order = torch.randperm(100, generator=generator)[:1]
        yield from (self._draw(order + epoch) for _ in range(self.count))

    def _draw(self, order: Tensor) -> Tensor:
        return torch.tensor(
            [float(order), float(torch.rand(())), np.random.rand(), random.random()]
        )


def stream(epochs: int | None = 2, seed: int = 0, task: Draws | None = None) -> BatchStream:
    return BatchStream(task or Draws(), seed, epochs, CPU)  # type: ignore[arg-type]


def all_of(batches: BatchStream) -> Iterator[list[float]]:
    while (batch := batches.next()) is not None:
        yield batch.tolist()


def test_batches_do_not_depend_on_what_is_drawn_between_them() -> None:
    plain = list(all_of(stream()))
    disturbed = []
    for batch in all_of(stream()):
        disturbed.append(batch)
        torch.rand(5), np.random.rand(), random.random()
    assert disturbed == plain
    assert len(plain) == len({tuple(batch) for batch in plain}) == 6


def test_steps_do_not_see_the_numbers_of_batches() -> None:
    seed_all(CPU, 3)
    expected = (random.random(), np.random.rand(), float(torch.rand(())))
    seed_all(CPU, 3)
    list(all_of(stream()))
    assert (random.random(), np.random.rand(), float(torch.rand(()))) == expected


@pytest.mark.parametrize("taken", range(6))
def test_a_stream_goes_on_from_its_place(taken: int) -> None:
    whole = list(all_of(stream()))
    first = stream()
    for _ in range(taken):
        first.next()
    second = stream()
    second.load_state_dict(first.state_dict())
    assert list(all_of(second)) == whole[taken:]


def test_other_seeds_and_epochs_are_other_batches() -> None:
    one, other = (list(all_of(stream(seed=seed))) for seed in (0, 1))
    assert one != other
    assert one[:3] != one[3:]


def test_an_epoch_without_batches_is_an_error() -> None:
    with pytest.raises(DataError, match="epoch 0 has no batches"):
        stream(task=Draws(0)).next()


def test_a_place_that_the_data_does_not_reach_is_an_error() -> None:
    with pytest.raises(DataError, match="epoch 1 has 3 batches, and 5 were taken"):
        stream().load_state_dict({"epoch": 1, "taken": 5})


def test_states_survive_a_checkpoint() -> None:
    random.gauss(0, 1), np.random.normal()
    states = random_states()
    expected = (random.gauss(0, 1), np.random.normal(), random.random(), float(torch.randn(())))
    set_random_states(unpacked_states(packed_states(states)))
    assert (random.gauss(0, 1), np.random.normal(), random.random(), float(torch.randn(()))) == (
        expected
    )


def test_generators_apart_move_on_by_themselves() -> None:
    states = seeded_states(CPU, 1, 2)
    with apart(states):
        first = torch.rand(())
    outside = torch.rand(())
    with apart(states):
        second = torch.rand(())
    seed_all(CPU, 1, 2)
    assert torch.equal(torch.stack([first, second]), torch.stack([torch.rand(()), torch.rand(())]))
    assert outside not in (first, second)
