"""Figures as inline SVG and HTML: one function a kind, no library, no network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from markupsafe import Markup

from smalti.analysis.figures import (
    Bars,
    Figure,
    HeatMap,
    Lines,
    Listing,
    Pictures,
    Scatter,
    Spreads,
)
from smalti.errors import ConfigError
from smalti.report.drawing.bars import draw_bars
from smalti.report.drawing.curves import draw_lines, draw_scatter
from smalti.report.drawing.heat_map import draw_heat_map, heat_numbers
from smalti.report.drawing.listing import draw_listing, numbers_of
from smalti.report.drawing.pictures import draw_pictures
from smalti.report.drawing.spreads import draw_spreads

__all__ = ["draw", "numbers_behind", "numbers_of"]


_DRAWINGS: dict[type[Figure], Callable[[Any], Markup]] = {
    Lines: draw_lines,
    Scatter: draw_scatter,
    Bars: draw_bars,
    Spreads: draw_spreads,
    Listing: draw_listing,
    Pictures: draw_pictures,
}


def draw(figure: Figure, key: str) -> Markup:
    """A figure as HTML; ``key`` tells it from the others of a page."""
    if isinstance(figure, HeatMap):
        return draw_heat_map(figure, key)
    if type(figure) not in _DRAWINGS:
        raise ConfigError(f"expected a figure that can be drawn, got {type(figure).__name__}")
    return _DRAWINGS[type(figure)](figure)


def numbers_behind(figure: Figure) -> dict[str, Any] | None:
    """What the page must know to tell numbers by itself; None where the drawing holds them."""
    return heat_numbers(figure) if isinstance(figure, HeatMap) else None
