"""A bar is drawn for those who watch, and for nobody else."""

from __future__ import annotations

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
