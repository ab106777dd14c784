"""Processes that accelerate or torchrun started measure one arm together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from smalti.experiments import run_table, table_named
from smalti.experiments.results import read_result, result_path

TABLE = table_named("depthwise-codes")
ARM = TABLE.arms[0]


def together(folder: Path, *asked: str) -> subprocess.CompletedProcess[str]:
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone"]
    places = ["--results", str(folder / "results"), "--work", str(folder / "work")]
    return subprocess.run(
        [*launch, "-m", "smalti", "reproduce", *asked, *places, "--scale", "tiny", "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.slow
def test_an_arm_is_measured_once_and_told_by_one(tmp_path: Path) -> None:
    done = together(tmp_path, TABLE.name, "--arm", ARM.name)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["table"] == TABLE.name
    assert done.stderr.count("(1 of 1)") == 1
    shared = read_result(result_path(tmp_path / "results", TABLE, ARM, "tiny", 0))
    (alone,) = run_table(TABLE, "tiny", tmp_path / "alone", tmp_path / "work", ARM.name)
    # Batches are cut over the processes: sums are rounded in another order.
    assert shared.metrics["mse"] == pytest.approx(alone.metrics["mse"], rel=0.05)
    assert not [path for path in (tmp_path / "work").rglob("*") if path.is_file()]


@pytest.mark.slow
def test_what_one_process_measures_is_refused_to_several(tmp_path: Path) -> None:
    done = together(tmp_path, "dpq-rank")
    assert done.returncode != 0
    assert "dpq-rank is measured by one process" in done.stderr
