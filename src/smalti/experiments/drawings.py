"""Figures of tables: one point an arm, with its spread over seeds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from smalti.analysis.figures import Spreads
from smalti.experiments.summary import summary
from smalti.experiments.table import Scale, Table
from smalti.report.drawing.spreads import draw_spreads
from smalti.report.drawing.standing_alone import standing_alone

# Beside the page that shows them.
FOLDER = "figures"


def drawings(tables: Iterable[Table], scale: Scale, folder: Path) -> dict[str, str]:
    """SVG files by name, of all tables that name a metric to draw and have results.

    Args:
        tables: Which.
        scale: Whose results.
        folder: Where they lie.
    """
    made = {}
    for table in tables:
        if table.drawn:
            figure = spreads(summary(table, scale, folder))
            if figure.names:
                made[f"{table.name}.svg"] = standing_alone(draw_spreads(figure))
    return made


def spreads(one: dict[str, Any]) -> Spreads:
    """The drawn metric of all arms that were measured."""
    label = next(metric["label"] for metric in one["metrics"] if metric["name"] == one["drawn"])
    cells = {row["arm"]: row["metrics"][one["drawn"]] for row in one["arms"]}
    known = {arm: cell for arm, cell in cells.items() if cell is not None}
    return Spreads(
        title=f"{one['title']} ({one['scale']})",
        value_title=label,
        names=tuple(known),
        values=tuple(cell["mean"] for cell in known.values()),
        spreads=tuple(cell.get("spread") for cell in known.values()),
    )
