"""A task to train, and a server that trains it in processes of their own.

The server imports torch once and forks a process for each job, which may be killed at a
chosen place. A job is a line of JSON on stdin; the answer is one on stdout.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from smalti.errors import SmaltiError
from smalti.quantizers import VectorQuantizer, follow
from smalti.training import Counted, TrainingSettings, train

# Also where there are other devices: processors add up in the same order each time.
os.environ["ACCELERATE_USE_CPU"] = "true"
ROWS, DIM = 90, 8
# Imported before the first job: each would import them anew.
EARLY = ("accelerate", "torch._dynamo", "torch.distributed.tensor", "torch.utils.tensorboard")


class Reconstruction:
    """Rows go through few dimensions, and through a codebook where one is wanted.

    Args:
        settings: Of the training.
        noise: Whether there is dropout and augmentation.
        quantizer: Settings of a codebook that learns with the optimizer's steps.
        events: What happens in which step: a signal's name, or ``"nan"``; below zero, in the
            evaluation after that step.
        rank: The process to which it happens; None for all.
        ballast: Bytes of a buffer that makes checkpoints large.
        spare: Whether there are parameters that no step uses.
    """

    def __init__(
        self,
        settings: TrainingSettings,
        noise: bool = False,
        quantizer: dict[str, Any] | None = None,
        events: dict[str, int] | None = None,
        rank: int | None = None,
        ballast: int = 0,
        spare: bool = False,
    ) -> None:
        torch.manual_seed(1)
        self.settings, self.noise = settings, noise
        self.rows = torch.randn(ROWS, DIM) @ torch.randn(DIM, DIM)
        self.encoder = nn.Sequential(nn.Linear(DIM, 6), nn.Dropout(0.3 if noise else 0.0))
        self.quantizer = None if quantizer is None else VectorQuantizer(6, 16, **quantizer)
        self.decoder = nn.Linear(6, DIM)
        parts = {"encoder": self.encoder, "quantizer": self.quantizer, "decoder": self.decoder}
        self.model: nn.Module = nn.ModuleDict({k: part for k, part in parts.items() if part})
        if spare:
            self.model.add_module("spare", nn.Linear(2, 2))
        if ballast:
            self.model.register_buffer("ballast", torch.zeros(ballast, dtype=torch.uint8))
        here = rank is None or rank == int(os.environ.get("RANK", "0"))
        self.events = {step: event for event, step in (events or {}).items() if here}
        self.seen = 0

    def batches(self, epoch: int, generator: torch.Generator) -> Iterable[Tensor]:
        """Shuffled rows; noise comes from every generator there is."""
        del epoch
        order = torch.randperm(ROWS, generator=generator).split(self.settings.batch_size)
        return Counted(self._augmented(order, generator), len(order))

    def _augmented(self, order: Iterable[Tensor], generator: torch.Generator) -> Iterator[Tensor]:
        for places in order:
            rows = self.rows[places]
            if self.noise:
                rows = rows + 0.1 * torch.randn(rows.shape, generator=generator)
                rows = rows + 0.1 * torch.randn(rows.shape)
                rows = rows * float(np.random.normal(1, 0.1)) + random.gauss(0, 0.1)
            yield rows

    def step(self, batch: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Mean squared error, and the quantizer's loss."""
        self.seen += 1
        self._happen(self.events.get(self.seen))
        hidden = self.encoder(batch)
        extra, metrics = batch.new_zeros(()), {}
        if self.quantizer is not None:
            hidden, _, extra, metrics = self.quantizer(hidden)
        error = (self.decoder(hidden) - batch).square().mean()
        if self.events.get(self.seen) == "nan":
            error = error * float("nan")
        return error + extra, {"error": error, **metrics}

    def _happen(self, event: str | None) -> None:
        if event is not None and event.startswith("SIG"):
            os.kill(os.getpid(), signal.Signals[event])

    def optimizer(self) -> torch.optim.Optimizer:
        """Adam; the codebook follows it."""
        made = torch.optim.Adam(self.model.parameters(), lr=self.settings.learning_rate)
        follow(self.model, made)
        return made

    def evaluate(self) -> dict[str, float]:
        """The error of all rows; it draws numbers, as a careless evaluation does."""
        self._happen(self.events.get(-self.seen))
        torch.rand(3), np.random.rand(3), random.random()
        return {"error": float((self.decoder(self.encoder(self.rows)) - self.rows).square().mean())}

    def picture(self) -> Tensor | None:
        """The first weights as grey values."""
        grey = (self.encoder[0].weight.detach() * 100).clamp(0, 255).to(torch.uint8)
        return grey.unsqueeze(-1).expand(-1, -1, 3)


def run(job: dict[str, Any]) -> None:
    """Train as a job says, and write the weights to ``out``.

    A job has ``settings``, ``run``, ``resume``, ``config`` and ``out``; ``task``, settings of
    the task; ``kill_at``, a place of a checkpoint's writing; ``most_bytes`` of a file.
    """
    settings = TrainingSettings(**job["settings"])
    task = Reconstruction(settings, **job.get("task", {}))
    if "kill_at" in job:
        sys.addaudithook(_killer(*job["kill_at"]))
    if "most_bytes" in job:
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["most_bytes"],) * 2)
    try:
        place, resume = job.get("run"), job.get("resume", False)
        outcome = train(task, settings, place, resume, config=job.get("config"))
    except SmaltiError as error:
        sys.exit(f"{type(error).__name__}: {error}")
    sys.stderr.write(f"{json.dumps([outcome.finished, outcome.step])}\n")
    rank = os.environ.get("RANK", "0")
    if "out" in job:
        torch.save(task.model.state_dict(), f"{job['out']}.{rank}")


def _killer(event: str, part: str, count: int) -> Any:
    """Dies at the ``count``-th time that an event of Python's own names a path with ``part``."""
    left = count

    def hook(name: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if name == event and part in str(arguments[0]):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    return hook


def serve() -> None:
    """Do jobs, each in processes of its own, and answer with how each ended and what it said."""
    for module in EARLY:
        with suppress(ImportError):
            import_module(module)
    for line in sys.stdin:
        job = json.loads(line)
        world = job.get("processes", 1)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        files = [Path(f"{job['log']}.{rank}") for rank in range(world)]
        children = [_forked(job, rank, world, port, files[rank]) for rank in range(world)]
        ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        answer = {"ends": ends, "said": [file.read_text() for file in files]}
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


def _forked(job: dict[str, Any], rank: int, world: int, port: int, log: Path) -> int:
    child = os.fork()
    if child:
        return child
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    if world > 1:
        where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": world}
        ranks = {"RANK": rank, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": world}
        os.environ.update({key: str(value) for key, value in (where | ranks).items()})
    code = 0
    try:
        run(job)
    except SystemExit as end:
        code = 2
        sys.stderr.write(f"{end.code}\n")
    except BaseException:
        code = 1
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    run(json.loads(sys.argv[1])) if len(sys.argv) > 1 else serve()
