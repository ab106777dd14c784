"""Lines and points over two axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from smalti.analysis.figures import Lines, Scatter, Series
from smalti.report.drawing.canvas import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    chart,
    colour,
    mark,
)
from smalti.report.drawing.scales import Scale, fitted, shown

# Lines of more points show no dots, only what pointing at them tells.
FEW_POINTS = 40


def draw_lines(figure: Lines) -> Markup:
    """A line for each series."""
    x, y = _scales(figure.series, log_x=False, log_y=figure.log_y)
    content: list[str] = []
    for number, series in enumerate(figure.series):
        content.append(_path(series, x, y, f"line {colour(number)}"))
    for number, series in enumerate(figure.series):
        kind = "dot" if len(series.x) <= FEW_POINTS else "dot far"
        content.extend(_dots(series, x, y, figure.x_title, f"{kind} {colour(number)}"))
    return chart(figure, content, x, y)


def draw_scatter(figure: Scatter) -> Markup:
    """A dot for each point, and the line that joins some."""
    every = [*figure.series, *([figure.joined] if figure.joined else [])]
    x, y = _scales(every, log_x=figure.log_x, log_y=figure.log_y)
    content = []
    if figure.joined is not None:
        content.append(_path(figure.joined, x, y, "line joined"))
    for number, series in enumerate(figure.series):
        content.extend(_dots(series, x, y, figure.x_title, f"point {colour(number)}"))
    return chart(figure, content, x, y)


def _scales(every: Sequence[Series], *, log_x: bool, log_y: bool) -> tuple[Scale, Scale]:
    points = [point for series in every for point in _points(series)]
    x = fitted([point[0] for point in points], LEFT + 4, WIDTH - RIGHT - 4, log=log_x)
    lowest = min((point[1] for point in points), default=0.0)
    highest = max((point[1] for point in points), default=1.0)
    # An axis that begins at zero wastes no room where numbers come near it.
    zero = not log_y and 0 <= lowest <= 0.5 * highest
    y = fitted([point[1] for point in points], HEIGHT - BOTTOM, TOP, log=log_y, zero=zero)
    return x, y


def _points(series: Series) -> Iterator[tuple[float, float, str]]:
    labels = series.labels or [""] * len(series.x)
    for x, y, label in zip(series.x, series.y, labels, strict=True):
        if y is not None and math.isfinite(y):
            yield x, y, label


def _path(series: Series, x: Scale, y: Scale, kind: str) -> str:
    places = [f"{x(one):.1f} {y(other):.1f}" for one, other, _ in _points(series)]
    return f'<path class="{kind}" d="M{"L".join(places)}"/>' if places else ""


def _dots(series: Series, x: Scale, y: Scale, x_title: str, kind: str) -> Iterator[str]:
    for one, other, label in _points(series):
        name = ": ".join(part for part in (series.name, label) if part)
        tip = f"{name}\n{shown(other)} at {shown(one)} {x_title}".strip()
        size = 5.5 if kind.startswith("point") else 3.5
        yield mark("circle", tip, cx=x(one), cy=y(other), r=size, **{"class": kind})
