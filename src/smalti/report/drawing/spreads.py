"""A row for each name: a point, and a line as long as it varies."""

from __future__ import annotations

from markupsafe import Markup, escape

from smalti.analysis.figures import Spreads
from smalti.report.drawing.canvas import colour, mark, words
from smalti.report.drawing.scales import fitted, short, shown

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 720, 270, 70, 12, 44
ROW = 24
# Letters that fit on the left.
LETTERS = 40


def draw_spreads(figure: Spreads) -> Markup:
    """Points and lines over one axis."""
    rows = list(zip(figure.names, figure.values, figure.spreads, strict=True))
    ends = [value + sign * (spread or 0.0) for _, value, spread in rows for sign in (-1, 1)]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    # An axis that begins at zero wastes no room where numbers come near it.
    x = fitted(ends, LEFT, WIDTH - RIGHT, zero=0 <= low <= 0.5 * high)
    bottom = TOP + ROW * len(rows)
    height = bottom + BOTTOM
    parts = []
    for tick in x.ticks(6):
        parts.append(mark("line", x1=x(tick), x2=x(tick), y1=TOP, y2=bottom, **{"class": "grid"}))
        parts.append(words(short(tick), x(tick), bottom + 17))
    parts.append(mark("line", x1=LEFT, x2=WIDTH - RIGHT, y1=bottom, y2=bottom, **{"class": "axis"}))
    for number, (name, value, spread) in enumerate(rows):
        middle = TOP + ROW * (number + 0.5)
        parts.append(words(_short_name(name), LEFT - 9, middle + 4, "end"))
        told = "" if spread is None else f", spread {shown(spread)}"
        if spread is not None:
            left, right = x(value - spread), x(value + spread)
            kind = {"class": f"line {colour(0)}"}
            parts.append(mark("line", x1=left, x2=right, y1=middle, y2=middle, **kind))
        tip = f"{name}\n{shown(value)} {figure.value_title}{told}"
        kind = {"class": f"point {colour(0)}"}
        parts.append(mark("circle", tip, cx=x(value), cy=middle, r=4.5, **kind))
        parts.append(words(shown(value), WIDTH - RIGHT + 8, middle + 4, "start"))
    parts.append(words(figure.value_title, (LEFT + WIDTH - RIGHT) / 2, height - 6, kind="title"))
    return Markup(
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(figure.title)}">{"".join(parts)}</svg>'
    )


def _short_name(name: str) -> str:
    return name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…"
