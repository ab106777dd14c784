"""What a run tells, and when: means of its steps, evaluations, pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from smalti.training.averages import Averages, joined_means
from smalti.training.learner import Learner
from smalti.training.processes import Processes, computing_in
from smalti.training.randomness import REPORTS, apart, seeded_states
from smalti.training.record import Record
from smalti.training.settings import TrainingSettings
from smalti.training.task import Task


class Progress(NamedTuple):
    """How far a run has come."""

    step: int = 0
    rows: int = 0
    seconds: float = 0.0
    """In steps; evaluations and checkpoints do not count."""


class Reporter:
    """Tells what is due at a step, once.

    Args:
        task: Whose figures.
        settings: What is told how often.
        processes: All call this; the first one writes.
    """

    def __init__(self, task: Task[Any], settings: TrainingSettings, processes: Processes) -> None:
        self.task, self.settings, self.processes = task, settings, processes
        self.figures: dict[str, dict[str, float]] = {}
        self._told: dict[str, int] = {}
        self._since = Progress()
        self._record: Record | None = None

    def open(self, run: Path, step: int) -> None:
        """Write to the directory of a run, which goes on from ``step``."""
        if self.processes.first:
            self._record = Record(run, self.settings, step, self._told)

    def close(self) -> None:
        """Close all files."""
        if self._record is not None:
            self._record.close()

    def report(self, progress: Progress, epoch: int, learner: Learner, final: bool = False) -> None:
        """Tell what is due and was not told yet; at the end, all of it."""
        step = progress.step
        if self._is_due("train", self.settings.log_every, step, final):
            self._tell_means(progress, epoch, learner)
        if self._is_due("evaluate", self.settings.evaluate_every, step, final):
            answer = self._asked("evaluate", step)
            self._tell("evaluate", progress, epoch, {key: float(answer[key]) for key in answer})
        if self._is_due("picture", self.settings.picture_every, step, final):
            picture = self._asked("picture", step)
            if self._record is not None and picture is not None:
                self._record.picture(step, epoch, picture)

    def state_dict(self) -> dict[str, Any]:
        """What was told, for a checkpoint."""
        return {"figures": self.figures, "told": self._told, "since": self._since}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state that ``state_dict`` gave."""
        self.figures, self._told = dict(state["figures"]), dict(state["told"])
        self._since = Progress(*state["since"])

    def _is_due(self, kind: str, period: int | None, step: int, final: bool) -> bool:
        if period is None or self._told.get(kind, 0) == step or not (final or step % period == 0):
            return False
        self._told[kind] = step
        return True

    def _tell_means(self, progress: Progress, epoch: int, learner: Learner) -> None:
        metrics = joined_means(self.processes.gather(learner.averages.totals()))
        learner.averages = Averages()
        rows, seconds = progress.rows - self._since.rows, progress.seconds - self._since.seconds
        self._since = progress
        more = {
            "learning_rate": learner.learning_rate,
            "rows_per_second": rows / seconds if seconds else 0.0,
        }
        self._tell("train", progress, epoch, metrics, **more)

    def _tell(
        self,
        kind: str,
        progress: Progress,
        epoch: int,
        metrics: dict[str, float],
        **more: float,
    ) -> None:
        self.figures[kind] = metrics
        if self._record is not None:
            seconds = progress.seconds
            self._record.figures(kind, progress.step, epoch, metrics, seconds=seconds, **more)

    def _asked(self, kind: str, step: int) -> Any:
        """The task's evaluation or picture, which leaves no trace in its training."""
        modes = {module: module.training for module in self.task.model.modules()}
        device = self.processes.device
        states = seeded_states(device, REPORTS, self.settings.seed, step)
        self.task.model.eval()
        try:
            with (
                apart(states, device),
                computing_in(self.settings.precision, device),
                torch.no_grad(),
            ):
                return self.task.evaluate() if kind == "evaluate" else self.task.picture()
        finally:
            for module, mode in modes.items():
                module.training = mode
