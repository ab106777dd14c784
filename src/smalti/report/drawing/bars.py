"""Bars, side by side where there are several series."""

from __future__ import annotations

from markupsafe import Markup

from smalti.analysis.figures import Bars
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
    words,
)
from smalti.report.drawing.scales import fitted, shown

# Letters that fit along the axis.
LETTERS = 76


def draw_bars(figure: Bars) -> Markup:
    """A group of bars for each name."""
    values = [value for series in figure.series for value in series.y if value is not None]
    if figure.limit is not None:
        values.append(figure.limit)
    y = fitted(values, HEIGHT - BOTTOM, TOP, zero=True)
    room = (WIDTH - LEFT - RIGHT) / max(1, len(figure.names))
    wide = 0.78 * room / max(1, len(figure.series))
    content = []
    for number, series in enumerate(figure.series):
        for place, (name, value) in enumerate(zip(figure.names, series.y, strict=True)):
            if value is None:
                continue
            left = LEFT + place * room + 0.11 * room + number * wide
            top, foot = sorted((y(value), y(0.0)))
            said = f"{series.name}, " if series.name else ""
            tip = f"{figure.x_title} {name}\n{said}{shown(value)} {figure.y_title}"
            content.append(
                mark(
                    "rect",
                    tip,
                    x=left,
                    y=top,
                    width=max(0.5, wide - min(1.5, 0.15 * wide)),
                    height=max(0.75, foot - top),
                    **{"class": f"bar {colour(number)}"},
                )
            )
    if figure.limit is not None:
        level = y(figure.limit)
        line = mark("line", x1=LEFT, x2=WIDTH - RIGHT, y1=level, y2=level, **{"class": "limit"})
        content += [line, words(figure.limit_name, WIDTH - RIGHT, level - 5, "end", "note")]
    return chart(figure, content, None, y, _words(figure, room))


def _words(figure: Bars, room: float) -> list[tuple[float, str]]:
    """As many names as fit, the first among them."""
    longest = max((len(name) for name in figure.names), default=1)
    fit = max(1, LETTERS // (min(longest, 18) + 2))
    step = -(-len(figure.names) // fit)
    few = max(4, LETTERS // max(1, -(-len(figure.names) // step)))
    return [
        (LEFT + (place + 0.5) * room, name if len(name) <= few else f"{name[: few - 1]}…")
        for place, name in enumerate(figure.names)
        if place % step == 0
    ]
