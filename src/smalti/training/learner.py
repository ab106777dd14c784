"""One optimizer step: shares of a batch, their gradients, and checks before weights change."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from smalti.errors import ConfigError, DataError, ShapeError, require
from smalti.training.averages import Averages
from smalti.training.processes import Processes, Step, explained
from smalti.training.schedules import ScheduledRates
from smalti.training.settings import TrainingSettings
from smalti.training.sharding import on_device, shares
from smalti.training.task import HeedsProgress, Task


class Learner:
    """Makes the steps of a task.

    Args:
        task: What learns.
        settings: How.
        processes: Who takes part.
    """

    def __init__(self, task: Task[Any], settings: TrainingSettings, processes: Processes) -> None:
        self.task, self.settings, self.processes = task, settings, processes
        self.module = processes.prepared(Step(task, settings.precision, processes.device))
        self.optimizer = task.optimizer()
        self.rates = ScheduledRates(self.optimizer, settings.schedule)
        self.averages = Averages()
        self.learning_rate = 0.0

    def learn(
        self, batch: Any, step: int, total: int | None, stop: Callable[[], bool]
    ) -> tuple[float, bool]:
        """Make the step after ``step`` others, with this process's share of a batch.

        Args:
            batch: The whole batch.
            step: How many steps were made.
            total: How many there are, where that is known.
            stop: Says whether this process was asked to stop.

        Returns:
            The loss of the whole batch, and whether any process was asked to stop.
        """
        self._tell_progress(step, total)
        loss = self._gradients_of(batch)
        parameters = [item for group in self.optimizer.param_groups for item in group["params"]]
        norm = nn.utils.get_total_norm([item.grad for item in parameters if item.grad is not None])
        asked = torch.tensor(float(stop()), device=loss.device)
        joined, stops = self.processes.sum(torch.stack([loss, asked])).tolist()
        # Both are the same on all processes, so all of them go on or none.
        _require_finite(joined, float(norm), step + 1)
        if self.settings.clip_norm is not None:
            nn.utils.clip_grads_with_norm_(parameters, self.settings.clip_norm, norm)
        self.averages.add({"gradient_norm": norm}, 1.0)
        self.learning_rate = self.rates.set(step, total)
        self.optimizer.step()
        self.task.model.zero_grad(set_to_none=True)
        return joined, bool(stops)

    def state_dict(self) -> dict[str, Any]:
        """The optimizer and its rates, for a checkpoint."""
        return {
            "optimizer": self.optimizer.state_dict(),
            "highest_rates": list(self.rates.highest),
            "learning_rate": self.learning_rate,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state that ``state_dict`` gave."""
        self.optimizer.load_state_dict(state["optimizer"])
        self.rates.highest = list(state["highest_rates"])
        self.learning_rate = state["learning_rate"]

    def _tell_progress(self, step: int, total: int | None) -> None:
        if isinstance(self.task, HeedsProgress):
            if total is None:
                raise ConfigError(
                    "this task has to know how many steps there are; give steps instead of "
                    "epochs, or give the batches of an epoch a length"
                )
            # Epochs may differ by a batch.
            self.task.heed(min(1.0, step / total))

    def _gradients_of(self, batch: Any) -> Tensor:
        """Add up the gradients of all pieces; returns this process's part of the loss."""
        processes = self.processes
        pieces = self.settings.gradient_accumulation
        parts = shares(batch, processes.rank, processes.count, pieces)
        total = torch.zeros((), device=processes.device)
        for place, share in enumerate(parts, start=1):
            last = place == len(parts)
            with nullcontext() if last else processes.without_exchange(self.module):
                loss, metrics = self._loss(on_device(share.batch, processes.device))
                # Gradients of the processes are averaged; their weights make that a sum.
                (loss * (share.weight * processes.count)).backward()
            total += loss.detach() * share.weight
            self.averages.add({"loss": loss, **metrics}, share.weight)
        return total

    def _loss(self, batch: Any) -> tuple[Tensor, Mapping[str, Tensor]]:
        try:
            loss, metrics = self.module(batch)
        except RuntimeError as error:
            raise explained(error) from error
        require(loss.numel() == 1, f"expected one loss, got shape {tuple(loss.shape)}", ShapeError)
        return loss.float().reshape(()), metrics


def _require_finite(loss: float, norm: float, step: int) -> None:
    if math.isfinite(loss) and math.isfinite(norm):
        return
    what = f"the gradient's norm is {norm}" if math.isfinite(loss) else f"the loss is {loss}"
    raise DataError(
        f"{what} in step {step}, and training can't go on; checkpoints are as they were. A lower "
        "learning_rate, a clip_norm or a longer warm_up may help, or a look at the data"
    )
