"""A run that was interrupted says how long it took in all and which sources ran it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from smalti.experiments.attempts import NAME, Earlier, begin_attempt


def _interrupted(place: Path, seconds: float) -> None:
    """As if the attempt under way had begun so long ago and had just written its last file."""
    attempts = json.loads((place / NAME).read_text())
    attempts[-1]["began"] = time.time() - seconds
    (place / NAME).write_text(json.dumps(attempts))
    checkpoint = place / "checkpoints" / "last"
    checkpoint.parent.mkdir(exist_ok=True)
    checkpoint.touch()


def test_the_first_attempt_has_nothing_before_it(tmp_path: Path) -> None:
    assert begin_attempt(tmp_path, "one") == Earlier(0, ())


def test_an_attempt_counts_up_to_the_last_file_that_it_left(tmp_path: Path) -> None:
    begin_attempt(tmp_path, "one")
    _interrupted(tmp_path, 40)
    second = begin_attempt(tmp_path, "two")
    assert second.seconds == pytest.approx(40, abs=0.5)
    assert second.sources == ("one",)
    _interrupted(tmp_path, 25)
    third = begin_attempt(tmp_path, "two")
    assert third.seconds == pytest.approx(65, abs=0.5)
    assert third.sources == ("one", "two")


def test_an_attempt_that_left_nothing_does_not_count(tmp_path: Path) -> None:
    begin_attempt(tmp_path, "one")
    assert begin_attempt(tmp_path, "two") == Earlier(0, ())
    _interrupted(tmp_path, 10)
    begin_attempt(tmp_path, "three")
    # Nothing newer than the file of the attempt before it.
    assert begin_attempt(tmp_path, "four").sources == ("two",)
