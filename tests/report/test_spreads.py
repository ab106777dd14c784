"""Points stand where their numbers are, and lines are as long as numbers vary."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from smalti.analysis.figures import Spreads
from smalti.report.drawing import draw
from smalti.report.drawing.standing_alone import standing_alone

FIGURE = Spreads("errors <of> arms", "MSE", ("a & b", "c", "d"), (1.0, 3.0, 2.0), (0.1, 0.2, None))


def elements(kind: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(standing_alone(draw(FIGURE, "key")))
    every = (element for element in root.iter() if kind in (element.get("class") or "").split())
    return list(every)


def test_points_are_as_far_apart_as_their_numbers() -> None:
    first, second, third = (float(point.get("cx") or 0) for point in elements("point"))
    # By hand: 3 is twice as far from 1 as 2 is.
    assert second - first == pytest.approx(2 * (third - first), abs=0.05)
    assert second > first


def test_lines_are_as_long_as_the_spread_and_missing_where_it_is_unknown() -> None:
    lengths = [float(line.get("x2") or 0) - float(line.get("x1") or 0) for line in elements("line")]
    assert len(lengths) == 2
    assert lengths[1] == pytest.approx(2 * lengths[0], abs=0.05)


def test_names_are_escaped_and_written_in_full() -> None:
    root = ElementTree.fromstring(standing_alone(draw(FIGURE, "key")))
    assert root.get("aria-label") == "errors <of> arms"
    assert "a & b" in [element.text for element in root.iter()]
