"""Tables to read, and the numbers of figures as tables."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from smalti.analysis.figures import Bars, Cell, Figure, HeatMap, Lines, Listing, Scatter
from smalti.report.drawing.scales import shown

# Heat maps of more cells become a table when someone asks for it.
MOST_CELLS = 700


def draw_listing(figure: Listing) -> Markup:
    """A table."""
    return table(figure.columns, figure.rows)


def table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Markup:
    """A table of cells; numbers stand at the right."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return Markup(
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        "</div>"
    )


def numbers_of(figure: Figure, key: str) -> Markup:
    """The exact numbers of a figure, folded away; nothing for what is a table itself."""
    if isinstance(figure, HeatMap):
        if len(figure.rows) * len(figure.columns) > MOST_CELLS:
            return _folded(Markup('<div class="scroll" data-table="{}"></div>').format(key))
        rows = [[name, *row] for name, row in zip(figure.rows, figure.values, strict=True)]
        return _folded(
            table([f"{figure.row_title} \\ {figure.column_title}", *figure.columns], rows)
        )
    if isinstance(figure, Bars):
        names = [series.name or figure.y_title for series in figure.series]
        columns = zip(*(series.y for series in figure.series), strict=True)
        cells = [[name, *row] for name, row in zip(figure.names, columns, strict=True)]
        return _folded(table([figure.x_title, *names], cells))
    if isinstance(figure, (Lines, Scatter)):
        points: list[list[Cell]] = [
            [series.name, label, x, y]
            for series in figure.series
            for x, y, label in zip(
                series.x, series.y, series.labels or [""] * len(series.x), strict=True
            )
        ]
        return _folded(table(["series", "", figure.x_title, figure.y_title], points))
    return Markup("")


def _folded(content: Markup) -> Markup:
    return Markup("<details><summary>Numbers</summary>{}</details>").format(content)


def _cell(value: Cell) -> str:
    kind = "" if isinstance(value, str) else ' class="number"'
    return f"<td{kind}>{escape(shown(value))}</td>"
