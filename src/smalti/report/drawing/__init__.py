"""Figures as inline SVG and HTML: one function a kind, no library, no network."""

from __future__ import annotations

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
)
from smalti.errors import ConfigError
from smalti.report.drawing.bars import draw_bars
from smalti.report.drawing.curves import draw_lines, draw_scatter
from smalti.report.drawing.heat_map import draw_heat_map, heat_numbers
from smalti.report.drawing.listing import draw_listing, numbers_of
from smalti.report.drawing.pictures import draw_pictures

__all__ = ["draw", "numbers_behind", "numbers_of"]


def draw(figure: Figure, key: str) -> Markup:
    """A figure as HTML; ``key`` tells it from the others of a page."""
    match figure:
        case HeatMap():
            return draw_heat_map(figure, key)
        case Lines():
            return draw_lines(figure)
        case Scatter():
            return draw_scatter(figure)
        case Bars():
            return draw_bars(figure)
        case Listing():
            return draw_listing(figure)
        case Pictures():
            return draw_pictures(figure)
    raise ConfigError(f"expected a figure that can be drawn, got {type(figure).__name__}")


def numbers_behind(figure: Figure) -> dict[str, Any] | None:
    """What the page must know to tell numbers by itself; None where the drawing holds them."""
    return heat_numbers(figure) if isinstance(figure, HeatMap) else None
