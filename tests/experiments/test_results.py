"""Results are read with care: what is not whole is named and left alone."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from smalti.errors import ArtifactError
from smalti.experiments import Result, summary, table_named
from smalti.experiments.results import FORMAT, read_result, result_path, write_result

TABLE = table_named("depthwise-codes")
ARM = TABLE.arms[0]


def _made_up() -> Result:
    return Result(
        table=TABLE.name,
        arm=ARM.name,
        scale="tiny",
        seed=0,
        spec={},
        spec_hash=TABLE.spec_hash(ARM, "tiny"),
        source_hash="",
        metrics={"mse": 0.5},
        timings={},
        details={},
        seconds=1.0,
        machine={},
        versions={},
    )


@pytest.mark.parametrize(
    "change",
    [
        {"metrics": None},
        {"metrics": {"mse": "0.1"}},
        {"metrics": {"mse": math.nan}},
        {"seed": "zero"},
        {"seed": True},
        {"details": []},
        {"beauty": 1},
    ],
)
def test_a_damaged_result_is_named(tmp_path: Path, change: dict[str, Any]) -> None:
    path = result_path(tmp_path, TABLE, ARM, "tiny", 0)
    path.parent.mkdir(parents=True)
    whole = {"format": FORMAT, **dataclasses.asdict(_made_up())}
    path.write_text(json.dumps(whole))
    assert read_result(path) == _made_up()
    path.write_text(json.dumps({**whole, **change}))
    with pytest.raises(ArtifactError, match="is not a whole result"):
        read_result(path)
    path.write_text("[]")
    with pytest.raises(ArtifactError, match="is not a result"):
        read_result(path)


def test_a_copy_of_a_result_is_not_another_seed(tmp_path: Path) -> None:
    path = write_result(tmp_path, TABLE, ARM, _made_up())
    shutil.copy(path, path.with_name(path.name.replace(".0.", ".copy.")))
    with pytest.raises(ArtifactError, match=r"copy\.json has another name than a result of seed 0"):
        summary(TABLE, "tiny", tmp_path)
