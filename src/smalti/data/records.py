"""Records of a file with columns: TSV, CSV, JSON lines, or lines that begin with a label.

The kind of file is told by its suffix, with or without ``.gz`` behind it. TSV has no quoting:
quote characters are ordinary ones, as in the GLUE files. CSV is quoted in the usual way.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from smalti.data.columns import is_header
from smalti.data.lines import LONGEST_LINE, read_lines
from smalti.errors import DataError, require

LAYOUTS = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
# So many records are looked at to tell a header and the columns of text.
SAMPLE = 100


def layout_of(path: Path) -> str:
    """What the name says: ``tsv``, ``csv``, ``jsonl``, or ``lines`` for everything else."""
    name = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return LAYOUTS.get(name.suffix.lower(), "lines")


@dataclass(frozen=True)
class Records:
    """A file of records.

    Args:
        path: Where it is.
        layout: How it is written.
        names: Its columns by name; without a header by number, the first is ``"1"``.
        headed: Whether the columns have names of their own.
        sample: The first records, all columns.
    """

    path: Path
    layout: str
    names: tuple[str, ...]
    headed: bool
    sample: list[tuple[Any, ...]] = field(repr=False, default_factory=list)

    def named(self, columns: Sequence[str | int]) -> tuple[str, ...]:
        """Columns given by name, or by number from 1 on, as names."""
        return tuple(self._named(column) for column in columns)

    def _named(self, column: str | int) -> str:
        if isinstance(column, str) and column in self.names:
            return column
        if str(column).isdecimal() and 1 <= int(column) <= len(self.names):
            return self.names[int(column) - 1]
        raise DataError(
            f"there is no column {column!r} in {self.path}; "
            f"{self.listing()}; or use a number from 1 to {len(self.names)}"
        )

    def listing(self) -> str:
        """The columns, for messages."""
        if self.headed:
            return f"its columns are: {', '.join(self.names)}"
        first = " | ".join(str(cell)[:40] for cell in self.sample[0])
        return f"it has {len(self.names)} columns without names, in its first line: {first}"

    def read(self, columns: Sequence[str]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Line number and the values of these columns, record by record.

        Values are text; in JSON lines whatever stands there, and None where nothing does.
        """
        if self.layout == "jsonl":
            for number, record in _objects(self.path):
                yield number, tuple(record.get(column) for column in columns)
            return
        places = [self.names.index(column) for column in columns]
        for number, cells in islice(_rows(self.path, self.layout), int(self.headed), None):
            require(
                len(cells) == len(self.names),
                f"expected {len(self.names)} columns in line {number} of {self.path}, "
                f"got {len(cells)}; mend or remove the line",
                DataError,
            )
            yield number, tuple(cells[place] for place in places)


def open_records(path: str | Path, wanted: Sequence[str | int] = ()) -> Records:
    """Look at a file's first records: its layout, its columns, whether it has a header.

    A first row that has one of the ``wanted`` names is a header.
    """
    path = Path(path)
    layout = layout_of(path)
    if layout == "jsonl":
        objects = [record for _, record in islice(_objects(path), SAMPLE)]
        require(bool(objects), f"{path} is empty", DataError)
        names = tuple(dict.fromkeys(key for record in objects for key in record))
        sample = [tuple(record.get(name) for name in names) for record in objects]
        return Records(path, layout, names, True, sample)
    rows = [tuple(cells) for _, cells in islice(_rows(path, layout), SAMPLE)]
    require(bool(rows), f"{path} is empty", DataError)
    rows = [row for row in rows if len(row) == len(rows[0])]  # ``read`` refuses the others.
    asked_for = any(column in rows[0] for column in wanted)
    if layout != "lines" and (asked_for or is_header(rows[0], rows[1:])):
        return Records(path, layout, rows[0], True, rows[1:])
    numbers = tuple(str(number + 1) for number in range(len(rows[0])))
    return Records(path, layout, numbers, False, rows)


def _rows(path: Path, layout: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each row; blank lines are left out."""
    if layout == "csv":
        yield from _quoted(path)
        return
    for number, line in read_lines(path):
        if line.strip():
            # Of other lines the first word is a label, and the rest a text.
            label_and_text = [*line.split(maxsplit=1), ""][:2]
            yield number, line.split("\t") if layout == "tsv" else label_and_text


def _quoted(path: Path) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(LONGEST_LINE)
    reader = csv.reader(line + "\n" for _, line in read_lines(path))
    try:
        for cells in reader:
            if cells:
                yield reader.line_num, cells
    except csv.Error as error:
        raise DataError(f"line {reader.line_num} of {path} is not CSV: {error}") from error


def _objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"expected a JSON object a line, but line {number} of {path} is not: {error}"
            ) from error
        require(
            isinstance(record, dict),
            f"expected a JSON object a line, got {line[:40]!r} in line {number} of {path}",
            DataError,
        )
        yield number, record
