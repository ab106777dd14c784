"""Two gloo processes learn what one process learns from the joined batches."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from smalti.training import read_journal

from .conftest import WORKER, Trainer, weights

SETTINGS = {"steps": 20, "batch_size": 20, "learning_rate": 0.01, "log_every": 5, "clip_norm": 5.0}
REVIVE = {"kind": "revive", "threshold": 0.5, "period": 4}
QUANTIZER: dict[str, Any] = {"dead": REVIVE}


def assert_near(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        torch.testing.assert_close(other[name], tensor, atol=1e-4, rtol=1e-4, msg=name)


@pytest.mark.parametrize(
    ("batch_size", "quantizer"),
    [
        # 7 rows are cut into 3 and 4, and the last batch of an epoch has 6.
        pytest.param(7, QUANTIZER, id="unequal shares"),
        pytest.param(20, QUANTIZER, id="equal shares", marks=pytest.mark.slow),
        pytest.param(7, {"learning": "gradient"}, id="gradient", marks=pytest.mark.slow),
    ],
)
def test_two_processes_learn_what_one_learns(
    trainer: Trainer, tmp_path: Path, batch_size: int, quantizer: dict[str, Any]
) -> None:
    settings = {**SETTINGS, "batch_size": batch_size}
    job = {"settings": settings, "task": {"quantizer": quantizer}}
    assert trainer(**job, run=tmp_path / "a", out=tmp_path / "one").statuses == [0]
    end = trainer(**job, run=tmp_path / "b", out=tmp_path / "two", processes=2)
    assert end.statuses == [0, 0], end.said
    alone = weights(tmp_path / "one")
    assert_near(alone, weights(tmp_path / "two", rank=0))
    assert_near(alone, weights(tmp_path / "two", rank=1))
    for line, other in zip(read_journal(tmp_path / "a"), read_journal(tmp_path / "b"), strict=True):
        # The loss is that of the joined batch, and every line is written once.
        assert line["step"] == other["step"]
        assert line["metrics"]["loss"] == pytest.approx(other["metrics"]["loss"], rel=1e-4)


def test_two_processes_that_accumulate_learn_what_one_learns_from_whole_batches(
    trainer: Trainer, tmp_path: Path
) -> None:
    # A start from data or a revival would see only the first or the last piece.
    task = {"quantizer": {"start": "random", "dead": "keep"}}
    assert trainer(settings=SETTINGS, task=task, out=tmp_path / "one").statuses == [0]
    settings = {**SETTINGS, "gradient_accumulation": 3}
    end = trainer(settings=settings, task=task, out=tmp_path / "two", processes=2)
    assert end.statuses == [0, 0], end.said
    assert_near(weights(tmp_path / "one"), weights(tmp_path / "two"))


def test_a_signal_to_one_process_stops_both_and_they_go_on_to_the_same_bits(
    trainer: Trainer, tmp_path: Path
) -> None:
    task = {"quantizer": QUANTIZER, "noise": True}
    job = {"settings": SETTINGS, "task": task, "processes": 2}
    assert trainer(**job, out=tmp_path / "whole").statuses == [0, 0]
    stopped = {**job, "task": {**task, "events": {"SIGTERM": 7}, "rank": 1}}
    end = trainer(**stopped, run=tmp_path / "run")
    assert end.statuses == [0, 0]
    assert "stopped by a signal to another process after step 7" in end.said[0]
    assert "stopped" not in end.said[1]
    end = trainer(**job, run=tmp_path / "run", resume=True, out=tmp_path / "resumed")
    assert end.statuses == [0, 0], end.said
    for name, tensor in weights(tmp_path / "whole").items():
        assert torch.equal(tensor, weights(tmp_path / "resumed")[name]), name


def test_a_run_can_go_on_with_another_number_of_processes(trainer: Trainer, tmp_path: Path) -> None:
    job = {"task": {"quantizer": QUANTIZER}, "run": tmp_path / "run"}
    assert trainer(**job, settings={**SETTINGS, "steps": 5}).statuses == [0]
    end = trainer(**job, settings=SETTINGS, resume=True, processes=2)
    assert end.statuses == [0, 0], end.said
    assert "not bit for bit" in end.said[0]


def test_a_failure_on_one_process_is_one_word_on_each(trainer: Trainer, tmp_path: Path) -> None:
    task = {"events": {"nan": 3}, "rank": 1}
    end = trainer(settings=SETTINGS, task=task, processes=2)
    assert end.statuses == [2, 2]
    assert all("DataError: the loss is nan in step 3" in said for said in end.said)
    settings = {**SETTINGS, "tensorboard": False}
    end = trainer(settings=settings, run=tmp_path / "run", processes=2, most_bytes=10_000)
    assert end.statuses == [2, 2]
    assert "can't write the checkpoint of step 20" in end.said[0]
    assert "the first process could not write" in end.said[1]


def test_parameters_that_take_no_part_are_allowed_when_it_is_said(
    trainer: Trainer, tmp_path: Path
) -> None:
    job: dict[str, Any] = {"task": {"spare": True}, "processes": 2}
    end = trainer(**job, settings=SETTINGS)
    assert end.statuses == [2, 2]
    assert "ConfigError: some parameters took no part in the loss of a step" in end.said[0]
    allowed = {**SETTINGS, "unused_parameters": True}
    assert trainer(**job, settings=allowed, out=tmp_path / "two").statuses == [0, 0]
    assert trainer(settings=SETTINGS, task=job["task"], out=tmp_path / "one").statuses == [0]
    assert_near(weights(tmp_path / "one"), weights(tmp_path / "two"))


def test_a_batch_too_small_to_share_is_refused(trainer: Trainer) -> None:
    # 90 rows in batches of 89: the last has one.
    end = trainer(settings={**SETTINGS, "batch_size": 89}, processes=2)
    assert end.statuses == [2, 2]
    assert "a batch of 1 rows can't be shared by 2 processes" in end.said[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "launcher",
    [
        ["torch.distributed.run", "--standalone", "--nproc-per-node=2"],
        # Its --cpu starts a single process; --multi_gpu starts two, and there is no GPU here.
        ["accelerate.commands.launch", "--multi_gpu", "--num_processes=2", "--num_machines=1"],
    ],
    ids=["torchrun", "accelerate launch"],
)
def test_launchers_start_processes_that_join(
    trainer: Trainer, tmp_path: Path, launcher: list[str]
) -> None:
    job = {"settings": SETTINGS, "task": {"quantizer": QUANTIZER}, "out": str(tmp_path / "two")}
    command = [sys.executable, "-m", *launcher, str(WORKER), json.dumps(job)]
    subprocess.run(command, check=True, timeout=240, capture_output=True)
    job["out"] = str(tmp_path / "one")
    assert trainer(**job).statuses == [0]
    for rank in (0, 1):
        assert_near(weights(tmp_path / "one"), weights(tmp_path / "two", rank))
