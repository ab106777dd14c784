"""What the loop trains: the contract between it and a task.

The loop knows no model. A task brings the model, the batches and the loss; the loop brings
processes, randomness, checkpoints and reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn, optim

Batch = TypeVar("Batch")


class Task(Protocol[Batch]):
    """Something to train.

    Where several processes train together, each has a task of its own, made alike; the
    first one's weights are everyone's at the start.
    """

    model: nn.Module
    """All that learns and is saved."""

    def batches(self, epoch: int, generator: torch.Generator) -> Iterable[Batch]:
        """The batches of one epoch, an optimizer step each.

        Every process is given whole batches, and the loop cuts its share out of them and
        moves it to the device. What is dear, such as reading and augmenting images, belongs
        where it is cheap: before training, or in ``step``. All that is random here comes
        from ``generator``; torch's, NumPy's and Python's own generators are seeded too. The
        result has a length where the schedule has to know it (see :class:`Counted`).
        """

    def step(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss, a mean over the rows of ``batch``, and what else to report."""

    def optimizer(self) -> optim.Optimizer:
        """The optimizer; called once, when the model is on its device."""

    def evaluate(self) -> dict[str, float]:
        """Figures of held-out data. The model is in evaluation mode, gradients are off.

        Every process calls this, and the first one's figures are reported.
        """

    def picture(self) -> Tensor | None:
        """A picture to look at, uint8 ``(height, width, 3)``, called as ``evaluate`` is."""


@runtime_checkable
class KeepsState(Protocol):
    """A task with state of its own, besides its model, that a resumed run needs."""

    def state_dict(self) -> dict[str, Any]:
        """The state: tensors, numbers, words, and lists and mappings of them."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a state that ``state_dict`` gave."""


@runtime_checkable
class HeedsProgress(Protocol):
    """A task that does things otherwise early than late, such as a warm-up of its own."""

    def heed(self, progress: float) -> None:
        """Told before each step which share of all steps is done, from 0 up to 1."""


class Counted(Generic[Batch]):
    """A stream of batches whose number is known.

    Args:
        batches: The stream.
        count: How many there are.
    """

    def __init__(self, batches: Iterable[Batch], count: int) -> None:
        self.batches, self.count = batches, count

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Batch]:
        return iter(self.batches)
