"""Runs that are killed, stopped or fail: what is left of them, and how they go on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from smalti.training import Checkpoints, read_journal, read_weights

from .conftest import WORKER, Trainer, names, weights

SETTINGS = {
    "steps": 20,
    "batch_size": 20,
    "learning_rate": 0.01,
    "schedule": "cosine",
    "checkpoint_every": 4,
    "log_every": 3,
    "evaluate_every": 5,
}
REVIVE = {"kind": "revive", "threshold": 0.5, "period": 3}
TASK: dict[str, Any] = {"noise": True, "quantizer": {"dead": REVIVE}}


def told(run: Path) -> list[dict[str, Any]]:
    """The lines of a journal but for the time they took."""
    clock = ("seconds", "rows_per_second")
    return [{k: v for k, v in line.items() if k not in clock} for line in read_journal(run)]


def assert_same(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


@pytest.fixture(scope="module")
def whole(trainer: Trainer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing disturbs; its weights lie beside it."""
    place = tmp_path_factory.mktemp("whole")
    end = trainer(settings=SETTINGS, task=TASK, run=place / "run", out=place / "weights")
    assert end.statuses == [0], end.said
    return place


@pytest.mark.parametrize(
    "death",
    [
        pytest.param({"task": {**TASK, "events": {"SIGKILL": 3}}}, id="before the first"),
        pytest.param({"task": {**TASK, "events": {"SIGKILL": 11}}}, id="in the middle"),
        pytest.param({"kill_at": ["os.mkdir", ".smalti-", 3]}, id="no file yet"),
        pytest.param({"kill_at": ["open", "manifest.json", 3]}, id="no manifest yet"),
        pytest.param({"kill_at": ["os.rename", ".smalti-", 3]}, id="no name yet"),
        pytest.param({"kill_at": ["os.rename", "step-00000004", 1]}, id="old one still there"),
        pytest.param({"kill_at": ["shutil.rmtree", ".smalti-step", 1]}, id="old one half gone"),
    ],
)
def test_a_killed_run_goes_on_to_the_same_bits(
    trainer: Trainer, whole: Path, tmp_path: Path, death: dict[str, Any]
) -> None:
    run = tmp_path / "run"
    end = trainer(**{"settings": SETTINGS, "task": TASK, "run": run, **death})
    assert end.statuses == [-signal.SIGKILL]
    end = trainer(settings=SETTINGS, task=TASK, run=run, resume=True, out=tmp_path / "weights")
    assert end.statuses == [0], end.said
    assert_same(weights(whole / "weights"), weights(tmp_path / "weights"))
    assert_same(weights(whole / "weights"), read_weights(run))
    assert told(run) == told(whole / "run")
    assert names(run / "checkpoints") == ["step-00000016", "step-00000020"]


def test_other_randomness_would_have_given_other_weights(
    trainer: Trainer, whole: Path, tmp_path: Path
) -> None:
    trainer(settings={**SETTINGS, "seed": 1}, task=TASK, out=tmp_path / "weights")
    other = weights(tmp_path / "weights")
    assert not torch.equal(weights(whole / "weights")["decoder.weight"], other["decoder.weight"])


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_ends_a_run_with_a_checkpoint_and_a_word(
    trainer: Trainer, whole: Path, tmp_path: Path, name: str
) -> None:
    run = tmp_path / "run"
    # Step 10 is also one in which an evaluation is due: it comes when the run goes on.
    task = {**TASK, "events": {name: 10}}
    end = trainer(settings=SETTINGS, task=task, run=run)
    assert end.statuses == [0]
    assert f"stopped by {name} after step 10" in end.said[0]
    assert "resume to go on" in end.said[0]
    assert "[false, 10]" in end.said[0]
    assert "Traceback" not in end.said[0]
    assert Checkpoints(run).steps() == [8, 10]
    end = trainer(settings=SETTINGS, task=TASK, run=run, resume=True, out=tmp_path / "weights")
    assert_same(weights(whole / "weights"), weights(tmp_path / "weights"))
    assert told(run) == told(whole / "run")


def test_a_signal_in_the_last_evaluation_is_heard_and_nothing_is_told_twice(
    trainer: Trainer, whole: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    end = trainer(settings=SETTINGS, task={**TASK, "events": {"SIGTERM": -20}}, run=run)
    assert "stopped by SIGTERM after step 20" in end.said[0]
    assert "[false, 20]" in end.said[0]
    end = trainer(settings=SETTINGS, task=TASK, run=run, resume=True, out=tmp_path / "weights")
    assert "[true, 20]" in end.said[0]
    assert_same(weights(whole / "weights"), weights(tmp_path / "weights"))
    assert told(run) == told(whole / "run")


def test_a_loss_that_is_no_number_stops_the_run_and_leaves_its_checkpoints(
    trainer: Trainer, whole: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    task = {**TASK, "events": {"nan": 11}}
    end = trainer(settings=SETTINGS, task=task, run=run)
    assert end.statuses == [2]
    assert "DataError: the loss is nan in step 11" in end.said[0]
    assert Checkpoints(run).steps() == [4, 8]
    end = trainer(settings=SETTINGS, task=TASK, run=run, resume=True, out=tmp_path / "weights")
    assert_same(weights(whole / "weights"), weights(tmp_path / "weights"))


def test_a_full_disk_is_said_and_the_older_checkpoint_stays(
    trainer: Trainer, whole: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    quiet = {**SETTINGS, "tensorboard": False}
    trainer(settings=quiet, task={**TASK, "events": {"SIGKILL": 7}}, run=run)
    end = trainer(settings=quiet, task=TASK, run=run, resume=True, most_bytes=15_000)
    assert end.statuses == [2]
    assert "ArtifactError: can't write the checkpoint of step 8" in end.said[0]
    assert "File too large" in end.said[0]
    assert "that of step 4 is whole" in end.said[0]
    assert names(run / "checkpoints") == ["step-00000004"]
    trainer(settings=quiet, task=TASK, run=run, resume=True, out=tmp_path / "weights")
    assert_same(weights(whole / "weights"), weights(tmp_path / "weights"))


def test_a_full_disk_is_said_when_the_journal_does_not_fit(
    trainer: Trainer, tmp_path: Path
) -> None:
    job = {"settings": {**SETTINGS, "tensorboard": False}, "task": TASK, "most_bytes": 100}
    end = trainer(**job, run=tmp_path / "run")
    assert end.statuses == [2]
    assert "ArtifactError: can't write the journal" in end.said[0]


@pytest.mark.slow
def test_a_run_that_is_killed_while_numbers_are_written_goes_on(tmp_path: Path) -> None:
    """A process of its own, killed from outside when a large checkpoint is half there."""
    task = {**TASK, "ballast": 200_000_000}
    settings = {**SETTINGS, "steps": 3, "checkpoint_every": 2, "keep_checkpoints": 1}

    def started(run: Path, **more: Any) -> subprocess.Popen[bytes]:
        job = {"settings": settings, "task": task, "run": str(run), **more}
        return subprocess.Popen([sys.executable, str(WORKER), json.dumps(job)])

    def waited(there: Callable[[], bool]) -> None:
        until = time.monotonic() + 300
        while not there() and time.monotonic() < until:
            time.sleep(0.001)

    run = tmp_path / "run"
    drafts = run / "checkpoints"
    process = started(run)
    waited(lambda: any(drafts.glob(".smalti-*/tensors.safetensors")))
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert any(drafts.glob(".smalti-*")), "it was too late"
    assert started(run, resume=True, out=str(tmp_path / "resumed")).wait() == 0
    assert not any(drafts.glob(".smalti-*"))
    assert started(tmp_path / "whole", out=str(tmp_path / "whole")).wait() == 0
    assert_same(weights(tmp_path / "whole"), weights(tmp_path / "resumed"))
