"""What each size of a table costs: all that was tried, and the frontier."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from smalti.embeddings import build_compressor
from smalti.errors import ConfigError
from smalti.hub.tuning import SIZES, Tuned, tune_table

pytest.importorskip("transformers")
DENSE = 400 * 24 * 4


@pytest.fixture(scope="module")
def tuned(small_model: Callable[[str], Path], text_file: Path) -> Tuned:
    """Without a budget: a ladder of sizes."""
    return tune_table(small_model("encoder"), text_file, progress=False)


def test_without_a_budget_there_is_a_frontier_and_no_best(tuned: Tuned) -> None:
    assert tuned.best is None
    drops = [trial.verdict.drop for trial in tuned.frontier]
    sizes = [trial.bytes for trial in tuned.frontier]
    assert len(drops) > 2
    assert drops == sorted(drops, reverse=True)
    assert sizes == sorted(sizes)
    for trial in tuned.trials:
        better = [
            other
            for other in tuned.frontier
            if other.bytes <= trial.bytes and other.verdict.drop <= trial.verdict.drop
        ]
        assert better, trial
    assert all(trial.bytes <= max(SIZES) / 100 * DENSE for trial in tuned.trials)


def test_the_best_of_each_size_learns_once(tuned: Tuned) -> None:
    taught = [trial.compressor for trial in tuned.trials if trial.taught]
    assert taught
    assert len(set(taught)) == len(taught)
    plain = [trial.compressor for trial in tuned.trials if not trial.taught]
    assert len(set(plain)) == len(plain)
    assert set(taught) <= set(plain)


def test_all_of_it_is_plain_data_from_which_tables_can_be_made(tuned: Tuned) -> None:
    content = json.loads(json.dumps(tuned.as_dict()))
    assert len(content["trials"]) == len(tuned.trials)
    for entry, trial in zip(content["trials"], tuned.trials, strict=True):
        assert build_compressor(entry["spec"]) == trial.compressor
    assert all(entry in content["trials"] for entry in content["frontier"])


def test_a_budget_has_a_best_within_it(small_model: Callable[[str], Path], text_file: Path) -> None:
    tuned = tune_table(small_model("encoder"), text_file, size="15%", progress=False)
    assert tuned.best is not None
    assert tuned.best.bytes <= 0.15 * DENSE
    assert tuned.best.verdict.drop == min(trial.verdict.drop for trial in tuned.trials)


def test_a_largest_drop_has_the_smallest_that_keeps_to_it(
    small_model: Callable[[str], Path], text_file: Path
) -> None:
    tuned = tune_table(
        small_model("causal"), text_file, max_drop="1%", every_method=False, progress=False
    )
    assert tuned.best is not None
    assert tuned.best.verdict.drop <= 1
    assert not any(trial.taught for trial in tuned.trials)


def test_contradictions_are_refused() -> None:
    with pytest.raises(ConfigError, match="not both"):
        tune_table("nowhere", size="4%", max_drop="1%")
