"""The frame that all drawings with axes share: grid, ticks, titles, marks that tell numbers."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from smalti.analysis.figures import Bars, Lines, Scatter
from smalti.report.drawing.scales import Scale, short

WIDTH, HEIGHT = 520, 270
LEFT, RIGHT, TOP, BOTTOM = 64, 14, 12, 44
# Colours repeat after so many series.
COLOURS = 8


def mark(name: str, tip: str = "", **attributes: float | str) -> str:
    """An element of a drawing; what it tells when one points at it is escaped."""
    parts = [f'{key.replace("_", "-")}="{_number(value)}"' for key, value in attributes.items()]
    if tip:
        parts.append(f'data-tip="{escape(tip)}" tabindex="0"')
    return f"<{name} {' '.join(parts)}/>"


def words(text: str, x: float, y: float, anchor: str = "middle", kind: str = "tick") -> str:
    """Text in a drawing."""
    return (
        f'<text class="{kind}" x="{_number(x)}" y="{_number(y)}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )


def colour(number: int) -> str:
    """The class that colours a series."""
    return f"c{number % COLOURS}"


def frame(
    content: Sequence[str],
    *,
    label: str,
    x: Scale | None,
    y: Scale,
    x_title: str,
    y_title: str,
    x_words: Sequence[tuple[float, str]] = (),
) -> Markup:
    """A drawing with its axes.

    Args:
        content: The marks.
        label: What it shows, for those who can't see it.
        x: The horizontal scale; None where words stand along the axis.
        y: The vertical scale.
        x_title: What the horizontal axis is.
        y_title: What the vertical axis is.
        x_words: Places and words along the horizontal axis.
    """
    parts = []
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for tick in y.ticks():
        place = y(tick)
        parts.append(mark("line", x1=LEFT, x2=right, y1=place, y2=place, **{"class": "grid"}))
        parts.append(words(short(tick), LEFT - 7, place + 4, "end"))
    along = [(x(tick), short(tick)) for tick in x.ticks(6)] if x is not None else list(x_words)
    for place, word in along:
        if x is not None:
            parts.append(mark("line", x1=place, x2=place, y1=TOP, y2=bottom, **{"class": "grid"}))
        parts.append(words(word, place, bottom + 17))
    parts.append(mark("line", x1=LEFT, x2=right, y1=bottom, y2=bottom, **{"class": "axis"}))
    parts.extend(content)
    parts.append(words(x_title, (LEFT + right) / 2, HEIGHT - 6, kind="title"))
    parts.append(
        f'<text class="title" transform="translate(12 {(TOP + bottom) / 2:.0f}) rotate(-90)" '
        f'text-anchor="middle">{escape(y_title)}</text>'
    )
    return Markup(
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


def chart(
    figure: Bars | Lines | Scatter,
    content: Sequence[str],
    x: Scale | None,
    y: Scale,
    x_words: Sequence[tuple[float, str]] = (),
) -> Markup:
    """A figure's marks with its axes and titles, and above them the names of its series."""
    names = legend([series.name for series in figure.series])
    titles = {"x_title": figure.x_title, "y_title": figure.y_title}
    return names + frame(content, label=figure.title, x=x, y=y, x_words=x_words, **titles)


def legend(names: Sequence[str]) -> Markup:
    """Names of series with their colours; nothing where there is one without a name."""
    if len([name for name in names if name]) < 1 or (len(names) == 1 and not names[0]):
        return Markup("")
    chips = "".join(
        f'<span class="chip {colour(number)}"><i></i>{escape(name)}</span>'
        for number, name in enumerate(names)
    )
    return Markup(f'<div class="legend">{chips}</div>')


def _number(value: float | str) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
