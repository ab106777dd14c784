"""Batches epoch after epoch, and the place in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from itertools import islice
from typing import Any

import torch

from smalti.errors import DataError, require
from smalti.training.randomness import BATCHES, apart, generator_of, seeded_states
from smalti.training.task import Task


class BatchStream:
    """The batches of a task, one epoch after the other.

    An epoch's random numbers depend on the seed and on the epoch alone. Batches draw from
    generators that the steps between them do not touch, so the next batch is the same
    whether or not the model was trained on those before.

    Args:
        task: Whose batches.
        seed: Of all epochs.
        epochs: How many; None goes on for ever.
        device: Whose generator is kept apart, too.
    """

    def __init__(
        self, task: Task[Any], seed: int, epochs: int | None, device: torch.device
    ) -> None:
        self.task, self.seed, self.epochs, self.device = task, seed, epochs, device
        self.epoch, self.taken = 0, 0
        self._open()

    def length(self) -> int | None:
        """How many batches all epochs have, where that is known."""
        if self.epochs is None or not isinstance(self._batches, Sized):
            return None
        return self.epochs * len(self._batches)

    def next(self) -> Any:
        """The next batch, or None after the last."""
        while self.epochs is None or self.epoch < self.epochs:
            with apart(self._states, self.device):
                batch = next(self._iterator, None)
            if batch is not None:
                self.taken += 1
                return batch
            require(self.taken > 0, f"epoch {self.epoch} has no batches", DataError)
            self.epoch, self.taken = self.epoch + 1, 0
            if self.epochs is None or self.epoch < self.epochs:
                self._open()
        return None

    def state_dict(self) -> dict[str, int]:
        """The place: the epoch, and how many of its batches were taken."""
        return {"epoch": self.epoch, "taken": self.taken}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go to a place that ``state_dict`` gave."""
        self.epoch, self.taken = state["epoch"], state["taken"]
        if self.epochs is not None and self.epoch >= self.epochs:
            return
        self._open()
        with apart(self._states, self.device):
            skipped = sum(1 for _ in islice(self._iterator, self.taken))
        require(
            skipped == self.taken,
            f"epoch {self.epoch} has {skipped} batches, and {self.taken} were taken before; the "
            "data is not that of the run to resume",
            DataError,
        )

    def _open(self) -> None:
        self._states = seeded_states(self.device, BATCHES, self.seed, self.epoch)
        with apart(self._states, self.device):
            generator = generator_of(BATCHES, self.seed, self.epoch)
            self._batches: Iterable[Any] = self.task.batches(self.epoch, generator)
            self._iterator: Iterator[Any] = iter(self._batches)
