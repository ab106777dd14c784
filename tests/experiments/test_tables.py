"""All of every table runs, tiny, and its metrics are those that it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from smalti.errors import DataError
from smalti.experiments import Table, known_tables, run_table
from smalti.experiments.page import page

TABLES = [table for table in known_tables() if table.untestable is None]


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_arm_of_a_table_runs_tiny(table: Table, tmp_path: Path) -> None:
    try:
        made = run_table(table, "tiny", tmp_path / "results", tmp_path / "work")
    except DataError as error:
        if "the set is public at" not in str(error):
            raise
        pytest.skip(str(error))
    assert {result.arm for result in made} == {arm.name for arm in table.arms_at("tiny")}
    measured = {name for result in made for name in (*result.metrics, *result.timings)}
    assert {metric.name for metric in table.metrics} <= measured
    for claim in table.claims:
        assert {one.metric for one in claim.comparisons()} <= measured
    text = page([table], "tiny", tmp_path / "results")
    assert all(f"| {arm.name} | 1 |" in text for arm in table.arms_at("tiny"))
