"""A drawing as a file of its own, with the colours that a page would give it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markupsafe import Markup

from smalti.report.drawing.canvas import colour, mark, words

VIEW = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')

# The light colours of a page; a file can't ask what is around it.
COLOURS = (
    "#0d9488",
    "#d97706",
    "#4f6bd6",
    "#c2416b",
    "#5f8d2e",
    "#8b5fc7",
    "#8a6d4b",
    "#64748b",
)
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#5d696c}text.title{fill:#1d2426}"
    ".grid{stroke:#ecebe6}.axis{stroke:#5d696c}"
    f".line{{stroke:{COLOURS[0]};stroke-width:2.2;fill:none}}"
    f".point{{fill:{COLOURS[0]};stroke:#fff}}.far{{display:none}}"
) + "".join(
    f".line.c{number}{{stroke:{shade}}}.dot.c{number},.point.c{number}{{fill:{shade}}}"
    for number, shade in enumerate(COLOURS)
)
# Names stand below, in columns.
NAME_HEIGHT, NAME_WIDTH, ABOVE_NAMES = 18, 250, 8


def standing_alone(drawing: Markup, names: Sequence[str] = ()) -> str:
    """A drawing as the text of an SVG file.

    Args:
        drawing: One SVG element; what stands before it is left out.
        names: Of series, in the order of their colours.
    """
    text = str(drawing)
    opening, rest = text[text.index("<svg") :].split(">", 1)
    width, height = (float(size) for size in VIEW.findall(opening)[0])
    columns = max(1, int(width // NAME_WIDTH))
    lines = -(-len(names) // columns)
    top = height + ABOVE_NAMES if names else height
    wider = f'viewBox="0 0 {width:g} {top + lines * NAME_HEIGHT:g}"'
    below = []
    for number, name in enumerate(names):
        line, column = divmod(number, columns)
        below.append(_name(name, number, 16 + NAME_WIDTH * column, top + NAME_HEIGHT * line))
    return (
        f'{VIEW.sub(wider, opening)} xmlns="http://www.w3.org/2000/svg">'
        f'<style>{STYLE}</style><rect width="100%" height="100%" fill="#fff"/>'
        f"{rest.removesuffix('</svg>')}{''.join(below)}</svg>\n"
    )


def _name(name: str, number: int, x: float, y: float) -> str:
    return mark("circle", cx=x, cy=y + 5, r=5, **{"class": f"dot {colour(number)}"}) + words(
        name, x + 10, y + 9, "start", "title"
    )
