"""The processes that train together: one by default, those that accelerate started otherwise."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from smalti.errors import ArtifactError, ConfigError, require
from smalti.training.extras import library
from smalti.training.task import Task

UNUSED = "Expected to have finished reduction in the prior iteration"


class Step(nn.Module):
    """A task's step as a module: what is wrapped to exchange gradients.

    A task then calls any method of its model, not only ``forward``.

    Args:
        task: Whose step.
        precision: In which it is computed.
        device: Where.
    """

    def __init__(self, task: Task[Any], precision: str, device: torch.device) -> None:
        super().__init__()
        self.model = task.model
        self._step = task.step
        self._precision, self._device = precision, device

    def forward(self, batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss and the metrics of a batch."""
        with computing_in(self._precision, self._device):
            return self._step(batch)


def computing_in(precision: str, device: torch.device) -> AbstractContextManager[Any]:
    """A block in which layers compute in that precision; weights stay float32."""
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16)


class Processes:
    """Who takes part in a run, and how they meet. With one process nothing is exchanged.

    Args:
        unused_parameters: Whether a step may leave parameters out of its loss.
    """

    def __init__(self, unused_parameters: bool) -> None:
        accelerate = library("accelerate", "Training needs")
        handler = accelerate.DistributedDataParallelKwargs(find_unused_parameters=unused_parameters)
        # Where there is no other device accelerate wants to hear it, or it forgets that there are
        # several processes. Precision is set around each step: here it would be for ever.
        try:
            self._accelerator = accelerate.Accelerator(
                cpu=not torch.accelerator.is_available(),
                mixed_precision="no",
                kwargs_handlers=[handler],
            )
        except ValueError as error:
            raise ConfigError(f"accelerate can't start here: {error}") from error
        kind = str(self._accelerator.distributed_type.value)
        require(
            kind == "NO" or kind.startswith("MULTI_"),
            f"expected accelerate to run one process, or several with a copy of the model each, "
            f"got {kind}; choose a launch without sharded models",
        )
        self.device: torch.device = self._accelerator.device
        self.rank: int = self._accelerator.process_index
        self.count: int = self._accelerator.num_processes
        self.first = self.rank == 0
        launched = int(os.environ.get("WORLD_SIZE", "1"))
        require(
            self.count == launched,
            f"{launched} processes were started, but accelerate joins {self.count} on "
            f"{self.device}; set ACCELERATE_USE_CPU=true to train on processors alone",
        )

    def prepared(self, step: Step) -> nn.Module:
        """The step with its model on the device, which exchanges gradients."""
        module: nn.Module = self._accelerator.prepare_model(step)
        return module

    def without_exchange(self, module: nn.Module) -> AbstractContextManager[Any]:
        """A block in which gradients are added up on each process alone."""
        block: AbstractContextManager[Any] = self._accelerator.no_sync(module)
        return block

    def sum(self, numbers: Tensor) -> Tensor:
        """The sum over all processes."""
        total: Tensor = self._accelerator.reduce(numbers, "sum")
        return total

    def gather(self, value: Any) -> list[Any]:
        """The values of all processes, in order."""
        if self.count == 1:
            return [value]
        return list(library("accelerate.utils", "Training needs").gather_object([value]))

    def require_written(self, error: ArtifactError | None) -> None:
        """Raise the first process's error; on the others, a word about it."""
        if not self.sum(torch.tensor(float(error is not None), device=self.device)):
            return
        raise error or ArtifactError("the first process could not write; see its message")


def explained(error: RuntimeError) -> Exception:
    """What torch says about parameters that took no part, in words that help."""
    if UNUSED in str(error):
        return ConfigError(
            "some parameters took no part in the loss of a step; set unused_parameters to true, "
            "or freeze them"
        )
    return error
