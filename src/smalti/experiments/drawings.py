"""Figures of tables, made of what was measured."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from smalti.analysis.figures import Figure, Lines, Scatter, Series, Spreads
from smalti.experiments.figures import Against, ByArm, Drawn, OverSteps, PartsOverSteps
from smalti.experiments.results import Result, read_results
from smalti.experiments.summary import summary
from smalti.experiments.table import Scale, Table
from smalti.report.drawing import draw
from smalti.report.drawing.standing_alone import standing_alone

# Beside the page that shows them.
FOLDER = "figures"
# Results of each arm, the first seed first.
Results = Mapping[str, Sequence[Result]]
# A number at each step of a run.
Course = dict[float, float]


def drawings(tables: Iterable[Table], scale: Scale, folder: Path) -> dict[str, str]:
    """SVG files by name, of all that tables have to draw and have results for.

    Args:
        tables: Which.
        scale: Whose results.
        folder: Where they lie.
    """
    return {
        name: standing_alone(draw(figure, name), names_of(figure))
        for table in tables
        for name, figure in figures_of(table, scale, folder).items()
    }


def figures_of(table: Table, scale: Scale, folder: Path) -> dict[str, Figure]:
    """What a table has to draw, by the names of its files.

    Args:
        table: Which.
        scale: Whose results.
        folder: Where they lie.
    """
    one, results = summary(table, scale, folder), read_results(folder, table, scale)
    made = {drawn.key(): _figure(drawn, one, results) for drawn in table.drawn}
    return {
        f"{table.name}-{key}.svg".replace("_", "-").replace("/", "-"): figure
        for key, figure in made.items()
        if figure is not None
    }


def names_of(figure: Figure) -> list[str]:
    """The names of what has a colour of its own."""
    return [one.name for one in figure.series] if isinstance(figure, Lines | Scatter) else []


def by_arm(one: dict[str, Any], metric: str) -> Spreads | None:
    """A metric of all arms that were measured; None where there is none.

    Args:
        one: The table's summary.
        metric: Which.
    """
    cells = {row["arm"]: row["metrics"][metric] for row in one["arms"]}
    known = {arm: cell for arm, cell in cells.items() if cell is not None}
    if not known:
        return None
    return Spreads(
        title=_title(one),
        value_title=_label(one, metric),
        names=tuple(known),
        values=tuple(cell["mean"] for cell in known.values()),
        spreads=tuple(cell.get("spread") for cell in known.values()),
    )


def _figure(drawn: Drawn, one: dict[str, Any], results: Results) -> Figure | None:
    if isinstance(drawn, ByArm):
        return by_arm(one, drawn.metric)
    if isinstance(drawn, Against):
        return _against(one, drawn)
    if isinstance(drawn, OverSteps):
        found = {arm: _mean_course(own, drawn.name) for arm, own in results.items()}
        return _lines(one, drawn.label, found, log=drawn.log)
    assert isinstance(drawn, PartsOverSteps)  # the only one left
    first = results.get(drawn.arm, ())[:1]
    parts = {label: _mean_course(first, name) for name, label in drawn.names.items()}
    return _lines(one, drawn.label, parts)


def _against(one: dict[str, Any], drawn: Against) -> Scatter | None:
    """Arms whose names begin alike have one colour."""
    groups: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    for row in one["arms"]:
        cells = [row["metrics"][name] for name in (drawn.over, drawn.metric)]
        if None not in cells:
            group = re.split(r"[\d,]", row["arm"])[0].strip()
            groups[group].append((cells[0]["mean"], cells[1]["mean"], row["arm"]))
    if not groups:
        return None
    return Scatter(
        title=_title(one),
        x_title=_label(one, drawn.over),
        y_title=_label(one, drawn.metric),
        series=[
            Series(name, *(list(part) for part in zip(*sorted(points), strict=True)))
            for name, points in groups.items()
        ],
        log_x=drawn.log,
    )


def _lines(
    one: dict[str, Any], label: str, courses: Mapping[str, Course], *, log: bool = False
) -> Lines | None:
    series = [Series(name, list(course), list(course.values())) for name, course in courses.items()]
    known = [line for line in series if line.x]
    return Lines(_title(one), "steps", label, known, log_y=log) if known else None


def _mean_course(results: Sequence[Result], name: str) -> Course:
    """The mean over seeds at each step."""
    found: dict[float, list[float]] = defaultdict(list)
    for result in results:
        for line in result.details.get("course", ()):
            if line.get(name) is not None:
                found[line["step"]].append(line[name])
    return {step: statistics.mean(values) for step, values in sorted(found.items())}


def _title(one: dict[str, Any]) -> str:
    return f"{one['title']} ({one['scale']})"


def _label(one: dict[str, Any], metric: str) -> str:
    return str(next(own["label"] for own in one["metrics"] if own["name"] == metric))
