"""A run that was interrupted says how long it took in all and which sources ran it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from smalti.experiments.attempts import Earlier, attempts_file, begin_attempt


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "run"
    made.mkdir()
    return made


def _interrupted(place: Path, seconds: float) -> None:
    """As if the attempt under way had begun so long ago and had just written its last file."""
    noted = attempts_file(place)
    attempts = json.loads(noted.read_text())
    attempts[-1]["began"] = time.time() - seconds
    noted.write_text(json.dumps(attempts))
    checkpoint = place / "checkpoints" / "last"
    checkpoint.parent.mkdir(exist_ok=True)
    checkpoint.touch()


def test_the_first_attempt_has_nothing_before_it_and_leaves_the_folder_empty(place: Path) -> None:
    assert begin_attempt(place, "one") == Earlier(0, ())
    assert not any(place.iterdir())


def test_an_attempt_counts_up_to_the_last_file_that_it_left(place: Path) -> None:
    begin_attempt(place, "one")
    _interrupted(place, 40)
    second = begin_attempt(place, "two")
    assert second.seconds == pytest.approx(40, abs=0.5)
    assert second.sources == ("one",)
    _interrupted(place, 25)
    third = begin_attempt(place, "two")
    assert third.seconds == pytest.approx(65, abs=0.5)
    assert third.sources == ("one", "two")


def test_an_attempt_that_left_nothing_does_not_count(place: Path) -> None:
    begin_attempt(place, "one")
    assert begin_attempt(place, "two") == Earlier(0, ())
    _interrupted(place, 10)
    begin_attempt(place, "three")
    # Nothing newer than the file of the attempt before it.
    assert begin_attempt(place, "four").sources == ("two",)
