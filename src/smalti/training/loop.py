"""The training loop: any task, on one process or many, killed and resumed as it comes.

A run that is killed and resumed ends with the weights of a run that was not, bit for bit:
the random numbers of a batch depend on the seed and its epoch, those of a step are part of
the checkpoint, and evaluations draw from generators of their own.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from smalti.artifacts import as_path
from smalti.errors import ArtifactError, ConfigError, require
from smalti.progress import progress_bar
from smalti.training.checkpoints import Checkpoint, Checkpoints, load_model
from smalti.training.learner import Learner
from smalti.training.outcome import TrainingOutcome
from smalti.training.processes import Processes
from smalti.training.randomness import (
    STEPS,
    packed_states,
    random_states,
    seed_all,
    set_random_states,
    unpacked_states,
)
from smalti.training.reporter import Progress, Reporter
from smalti.training.settings import TrainingSettings, require_same
from smalti.training.sharding import rows_of
from smalti.training.signals import StopSignals
from smalti.training.streams import BatchStream
from smalti.training.task import KeepsState, Task


def train(
    task: Task[Any],
    settings: TrainingSettings,
    run: str | Path | None = None,
    resume: bool = False,
    *,
    config: Mapping[str, Any] | None = None,
) -> TrainingOutcome:
    """Train a task.

    SIGTERM and Ctrl-C end the run after the step at hand, with a checkpoint; the outcome is
    then not ``finished``.

    Args:
        task: What is trained.
        settings: How.
        run: A directory for the journal, checkpoints and pictures; None writes nothing.
        resume: Go on from the latest checkpoint, or start where there is none. Without it,
            a run that has checkpoints is left alone.
        config: What the task was made from, as JSON data; a resumed run must have the same. It
            may have a part ``training``, for which ``settings`` speak.
    """
    require(run is not None or not resume, "there is nothing to resume without a run's directory")
    processes = Processes(settings.unused_parameters)
    outside = random_states(processes.device)
    checkpoints = None if run is None else Checkpoints(run, settings.keep_checkpoints)
    lasting = {**_as_json(config or {}), "training": settings.lasting()}
    try:
        found = None
        if checkpoints is not None:
            found = _checkpoint_to_resume(checkpoints, resume, lasting, processes)
        with StopSignals() as signals:
            training = _Training(task, settings, processes, checkpoints, lasting, found)
            return training.sitting(signals, None if run is None else as_path(run))
    finally:
        set_random_states(outside, processes.device)


def _checkpoint_to_resume(
    checkpoints: Checkpoints, resume: bool, lasting: Mapping[str, Any], processes: Processes
) -> Checkpoint | None:
    run = checkpoints.folder.parent
    steps = checkpoints.steps()
    require(
        resume or not steps,
        f"{run} has a checkpoint of step {max(steps, default=0)}; resume it, or choose another "
        "directory",
    )
    found = checkpoints.latest()
    seen = processes.gather(None if found is None else found.step)
    require(
        len(set(seen)) == 1,
        f"processes see different checkpoints in {run}, of steps {seen}; it must be a directory "
        "that all of them share",
        ArtifactError,
    )
    if found is not None:
        require_same(found.settings, lasting, run)
    elif resume and processes.first:
        _say(f"{run} has no checkpoint yet; training starts anew")
    if processes.first:
        checkpoints.tidy()
    return found


class _Training:
    """All that a checkpoint holds, and what moves it on.

    Args:
        task: What is trained.
        settings: How.
        processes: Who takes part.
        checkpoints: Where they are written, if anywhere.
        lasting: What a run that is resumed must have in common with this.
        found: The checkpoint to go on from.
    """

    def __init__(
        self,
        task: Task[Any],
        settings: TrainingSettings,
        processes: Processes,
        checkpoints: Checkpoints | None,
        lasting: Mapping[str, Any],
        found: Checkpoint | None,
    ) -> None:
        self.task, self.settings, self.processes = task, settings, processes
        self.checkpoints, self.lasting = checkpoints, lasting
        seed_all(processes.device, STEPS, settings.seed, processes.rank)
        if found is not None:
            # Before the processes share their weights.
            load_model(task.model, found)
        self.progress = Progress()
        self.learner = Learner(task, settings, processes)
        self.reporter = Reporter(task, settings, processes)
        self.stream = BatchStream(task, settings.seed, settings.epochs, processes.device)
        self.total = settings.steps or self.stream.length()
        self.kept = 0
        if found is not None:
            self._restore(found)

    def sitting(self, signals: StopSignals, run: Path | None) -> TrainingOutcome:
        """Make the steps that are left, or those until a signal."""
        if run is not None:
            self.reporter.open(run, self.progress.step)
        try:
            stopped = self._steps(signals)
            if not stopped:
                self._report(final=True)
                # A signal that came while this was told is for what the caller does next, too.
                stopped = any(self.processes.gather(signals.came()))
        finally:
            self.reporter.close()
        path = self._keep()
        if stopped and self.processes.first:
            cause = signals.received or "a signal to another process"
            where = f"; {path} is the checkpoint, resume to go on" if path else ""
            _say(f"stopped by {cause} after step {self.progress.step}{where}")
        figures = self.reporter.figures
        return TrainingOutcome(
            finished=not stopped,
            step=self.progress.step,
            epoch=self.stream.epoch,
            metrics=figures.get("train", {}),
            evaluation=figures.get("evaluate", {}),
            seconds=self.progress.seconds,
            checkpoint=path,
        )

    def _steps(self, signals: StopSignals) -> bool:
        """Make steps, report and keep; says whether a signal ended them."""
        self.task.model.train()
        self._report()
        shown = None if self.processes.first else False
        with progress_bar("training", "steps", total=self.total, shown=shown) as advance:
            advance(self.progress.step)
            while self.settings.steps is None or self.progress.step < self.settings.steps:
                began = time.perf_counter()
                batch = self.stream.next()
                if batch is None:
                    break
                step, rows, seconds = self.progress
                loss, stop = self.learner.learn(batch, step, self.total, signals.came)
                seconds += time.perf_counter() - began
                self.progress = Progress(step + 1, rows + rows_of(batch), seconds)
                advance(1, note=f"loss {loss:.4g}")
                if stop:
                    # What is due is told when the run goes on: there may be little time now.
                    return True
                self._report()
                every = self.settings.checkpoint_every
                if every is not None and self.progress.step % every == 0:
                    self._keep()
        return False

    def _report(self, final: bool = False) -> None:
        self.reporter.report(self.progress, self.stream.epoch, self.learner, final)

    def _keep(self) -> Path | None:
        """Write a checkpoint, unless this step has one."""
        step = self.progress.step
        if self.checkpoints is None or step == 0:
            return None
        if self.kept != step:
            everyone = self.processes.gather(self._own_state())
            failure = None
            if self.processes.first:
                try:
                    self.checkpoints.write(step, self.lasting, self._state(everyone))
                except ArtifactError as error:
                    failure = error
            self.processes.require_written(failure)
            self.kept = step
        return self.checkpoints.path(step)

    def _state(self, everyone: list[Any]) -> dict[str, Any]:
        return {
            "model": self.task.model.state_dict(),
            "learner": self.learner.state_dict(),
            "reporter": self.reporter.state_dict(),
            "stream": self.stream.state_dict(),
            "progress": self.progress,
            "processes": everyone,
        }

    def _own_state(self) -> dict[str, Any]:
        """What differs between processes."""
        return {
            "random": packed_states(random_states(self.processes.device)),
            "averages": self.learner.averages.state_dict(),
            "task": self.task.state_dict() if isinstance(self.task, KeepsState) else None,
        }

    def _restore(self, found: Checkpoint) -> None:
        state, processes = found.state, self.processes
        self.kept, self.progress = found.step, Progress(*state["progress"])
        self.learner.load_state_dict(state["learner"])
        self.reporter.load_state_dict(state["reporter"])
        self.stream.load_state_dict(state["stream"])
        everyone = state["processes"]
        if len(everyone) == processes.count:
            own = everyone[processes.rank]
            self.learner.averages.load_state_dict(own["averages"])
            if isinstance(self.task, KeepsState):
                self.task.load_state_dict(own["task"])
            set_random_states(unpacked_states(own["random"]), processes.device)
            return
        require(
            not isinstance(self.task, KeepsState),
            f"the checkpoint {found.path} is of {len(everyone)} processes with a state each; "
            f"resume it with as many, not with {processes.count}",
        )
        seed_all(processes.device, STEPS, self.settings.seed, processes.rank, found.step)
        if processes.first:
            _say(f"{len(everyone)} processes stopped and {processes.count} go on: not bit for bit")


def _as_json(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config as it will come back from a checkpoint."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(config))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"expected a config of JSON data, got another thing: {error}") from error
    return plain


def _say(word: str) -> None:
    sys.stderr.write(f"smalti: {word}\n")
