"""Shares as people write them."""

from __future__ import annotations

import pytest

from smalti.errors import ConfigError
from smalti.hub.choosing.budget import rows_or_share, share


@pytest.mark.parametrize(
    ("written", "percent"),
    [("4%", 4), ("0.04", 4), (0.04, 4), ("0.5%", 0.5), ("100%", 100), ("1.0", 100), ("4 %", 4)],
)
def test_a_share_is_read_as_percent_or_as_a_fraction(written: str | float, percent: float) -> None:
    assert share("size", written) == pytest.approx(percent)


@pytest.mark.parametrize(
    "written", ["0%", "0", "4", "150%", "-5%", "abc", "", "%", "nan", "nan%", "inf", "1e400%", None]
)
def test_nonsense_is_refused_with_an_example(written: str | None) -> None:
    with pytest.raises(ConfigError, match=r"size must be .* such as 4% or 0.04, got"):
        share("size", written)  # type: ignore[arg-type]


def test_nothing_is_a_share_only_where_that_is_asked_for() -> None:
    assert share("max_drop", "0%", or_none=True) == 0
    with pytest.raises(ConfigError):
        share("max_drop", "-0.1%", or_none=True)


def test_a_whole_number_means_rows_and_all_else_a_share() -> None:
    assert rows_or_share("1000") == 1000
    assert isinstance(rows_or_share("1"), int)
    assert rows_or_share("50%") == 0.5
    assert rows_or_share("1.0") == 1.0
    assert isinstance(rows_or_share("1.0"), float)


@pytest.mark.parametrize("written", ["-5", "abc", "150%", "²", "", "2.5", "0%"])
def test_what_is_neither_rows_nor_a_share_is_refused(written: str) -> None:
    with pytest.raises(ConfigError, match="a number of rows such as 1000, or a share"):
        rows_or_share(written)
