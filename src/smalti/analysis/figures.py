"""What a figure shows, as plain data: drawing it is left to those who have a page."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from smalti.analysis.png import png

Cell = str | int | float | None
# So many bars can be told apart.
FEW_BARS = 16


@dataclass(frozen=True)
class Figure:
    """Data for one figure.

    Args:
        title: What it shows, in a few words.
    """

    kind: ClassVar[str] = "figure"
    title: str

    def as_dict(self) -> dict[str, Any]:
        """Plain data, its kind included."""
        return {"kind": self.kind, **{key: _plain(part) for key, part in asdict(self).items()}}


@dataclass(frozen=True)
class HeatMap(Figure):
    """A number for each row and column.

    Args:
        title: What it shows.
        row_title: What a row is.
        column_title: What a column is.
        value_title: What the numbers are.
        rows: Names of the rows.
        columns: Names of the columns.
        values: Rows of numbers; None where there is none.
        shade_to: The number with the darkest shade, where it is not the largest: a few large
            numbers must not leave all others white.
    """

    kind: ClassVar[str] = "heat_map"
    row_title: str
    column_title: str
    value_title: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float | None]]
    shade_to: float | None = None


@dataclass(frozen=True)
class Series:
    """Numbers that belong together.

    Args:
        name: What they are.
        x: Where they stand.
        y: The numbers; None where there is none.
        labels: What to call each; empty where they have no names.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    labels: Sequence[str] = ()


@dataclass(frozen=True)
class Lines(Figure):
    """Numbers over numbers, joined by lines.

    Args:
        title: What it shows.
        x_title: What the horizontal axis is.
        y_title: What the vertical axis is.
        series: The lines.
        log_y: Whether the vertical axis counts factors.
    """

    kind: ClassVar[str] = "lines"
    x_title: str
    y_title: str
    series: Sequence[Series]
    log_y: bool = False


@dataclass(frozen=True)
class Scatter(Figure):
    """Points in the plane.

    Args:
        title: What it shows.
        x_title: What the horizontal axis is.
        y_title: What the vertical axis is.
        series: Groups of points.
        joined: Points that are joined by a line, such as a frontier.
        log_x: Whether the horizontal axis counts factors.
        log_y: Whether the vertical axis does.
    """

    kind: ClassVar[str] = "scatter"
    x_title: str
    y_title: str
    series: Sequence[Series]
    joined: Series | None = None
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Bars(Figure):
    """A number for each of some names.

    Args:
        title: What it shows.
        x_title: What the names are.
        y_title: What the numbers are.
        names: The names.
        series: For each series the numbers, one a name; ``x`` counts the names.
        limit: A number that none can pass, drawn as a line.
        limit_name: What that is.
    """

    kind: ClassVar[str] = "bars"
    x_title: str
    y_title: str
    names: Sequence[str]
    series: Sequence[Series]
    limit: float | None = None
    limit_name: str = ""


@dataclass(frozen=True)
class Spreads(Figure):
    """A number for each of some names, with how far it varies.

    Args:
        title: What it shows.
        value_title: What the numbers are.
        names: The names.
        values: The numbers.
        spreads: How far each varies to both sides; None where that is not known.
    """

    kind: ClassVar[str] = "spreads"
    value_title: str
    names: Sequence[str]
    values: Sequence[float]
    spreads: Sequence[float | None]


@dataclass(frozen=True)
class Listing(Figure):
    """A table to read.

    Args:
        title: What it shows.
        columns: Names of the columns.
        rows: The cells.
    """

    kind: ClassVar[str] = "listing"
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Layer:
    """The same pictures once more, in another state.

    Args:
        name: Such as a level of codes.
        note: What it costs and how close it is.
        pictures: PNG files in base64.
    """

    name: str
    note: str
    pictures: Sequence[str]


@dataclass(frozen=True)
class Pictures(Figure):
    """Pictures beside what became of them, in one or several ways.

    Args:
        title: What it shows.
        width: Of each picture, in pixels.
        height: Of each.
        originals: PNG files in base64.
        layers: What became of them.
    """

    kind: ClassVar[str] = "pictures"
    width: int
    height: int
    originals: Sequence[str]
    layers: Sequence[Layer]


def by_number(
    title: str,
    x_title: str,
    y_title: str,
    series: dict[str, Sequence[float]],
    limit: tuple[float, str] | None = None,
) -> Bars | Lines:
    """Numbers of things that are counted from 0 on: bars of a few, lines of many.

    Args:
        title: What it shows.
        x_title: What is counted.
        y_title: What the numbers are.
        series: By name.
        limit: A number that none can pass, and what that is.
    """
    many = max(len(values) for values in series.values())
    made = [Series(name, tuple(range(many)), tuple(values)) for name, values in series.items()]
    if many > FEW_BARS:
        return Lines(title, x_title, y_title, made)
    names = [str(number) for number in range(many)]
    return Bars(title, x_title, y_title, names, made, *(limit or (None, "")))


def bars_of(title: str, x_title: str, y_title: str, values: dict[str, float | None]) -> Bars:
    """Bars of one series without a name."""
    series = Series("", tuple(range(len(values))), tuple(values.values()))
    return Bars(title, x_title, y_title, tuple(values), (series,))


def encoded(picture: npt.NDArray[np.uint8]) -> str:
    """A picture ``(height, width, 1 or 3)`` as a PNG file in base64."""
    return base64.b64encode(png(picture)).decode("ascii")


def _plain(part: Any) -> Any:
    """The same with lists in the place of tuples, as JSON gives it back."""
    if isinstance(part, dict):
        return {key: _plain(value) for key, value in part.items()}
    return [_plain(value) for value in part] if isinstance(part, (list, tuple)) else part
