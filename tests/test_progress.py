"""A bar is drawn for those who watch, and for nobody else."""

from __future__ import annotations

import re
import time

import pytest

from smalti.progress import progress_bar


def test_nothing_is_drawn_where_stderr_is_no_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar("counting", "tokens", total=2) as advance:
        advance(2)
    assert capfd.readouterr() == ("", "")


def test_a_bar_says_what_how_much_and_of_how_much(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar("counting", "tokens", total=20_000, shown=True) as advance:
        advance(12_345)
    out, err = capfd.readouterr()
    assert out == ""
    assert "counting" in err
    assert "12,345 of 20,000 tokens" in err


def test_slow_work_has_decimals_and_a_note(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar("training", "steps", total=4, shown=True) as advance:
        for loss in (2.5, 1.25):
            advance(1, note=f"loss {loss}")
            time.sleep(0.3)
    _, err = capfd.readouterr()
    last = err.strip().splitlines()[-1]
    assert "2 of 4 steps" in last
    # One step in something more than 0.3 seconds.
    assert re.search(r"[0-3]\.\d\d/s", last)
    assert "loss 1.25" in last
