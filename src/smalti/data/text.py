"""Texts from files of many kinds, one after the other, never all in memory.

``.tsv``, ``.csv`` and ``.jsonl`` have columns; any other file has a text a line. All may be
gzipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from smalti.data.columns import known_texts, texts_by_content
from smalti.data.lines import read_lines
from smalti.data.records import Records, layout_of, open_records
from smalti.errors import DataError, require


@dataclass(frozen=True)
class TextFile:
    """A file and what is read of it.

    Args:
        path: Where it is.
        columns: The columns that are read; none of a file with a text a line.
        chosen: How the columns were chosen: ``given``, ``by name`` or ``by content``.
        records: The file's records, if it has columns.
    """

    path: Path
    columns: tuple[str, ...] = ()
    chosen: str = ""
    records: Records | None = None

    def texts(self) -> Iterator[str]:
        """Text after text; blank ones are left out."""
        seen = False
        for number, values in self._values():
            for column, value in zip(self.columns or ("",), values, strict=True):
                require(
                    value is None or isinstance(value, str),
                    f"expected text in column {column} of line {number} of {self.path}, "
                    f"got {str(value)[:40]}",
                    DataError,
                )
                if value and not value.isspace():
                    seen = True
                    yield value
        require(seen, f"{self.path} holds no texts", DataError)

    def _values(self) -> Iterator[tuple[int, tuple[str | None, ...]]]:
        if self.records is None:
            return ((number, (line,)) for number, line in read_lines(self.path))
        return self.records.read(self.columns)

    def __str__(self) -> str:
        """Such as ``train.tsv.gz, columns sentence1 and sentence2 (by name)``."""
        if not self.columns:
            return str(self.path)
        word = "columns" if len(self.columns) > 1 else "column"
        return f"{self.path}, {word} {' and '.join(self.columns)} ({self.chosen})"


def open_texts(path: str | Path, columns: Sequence[str | int] = ()) -> TextFile:
    """Look at a file and choose the columns to read.

    Args:
        path: A file with a text a line, or with columns.
        columns: By name, or by number from 1 on. Without them well-known names are looked for,
            and without a header columns of several words. Of a file with a text a line, column
            1 is the first word and 2 the rest, for lines that begin with a label.
    """
    path = Path(path)
    if layout_of(path) == "lines" and not columns:
        # A file that is missing or broken is found now, not later.
        require(next(read_lines(path), None) is not None, f"{path} is empty", DataError)
        return TextFile(path)
    columns = (columns,) if isinstance(columns, str) else columns
    return choose_texts(open_records(path, columns), columns)


def choose_texts(records: Records, columns: Sequence[str | int] = ()) -> TextFile:
    """Choose the columns of text among records; see :func:`open_texts`."""
    if columns:
        return TextFile(records.path, records.named(columns), "given", records)
    names, chosen = known_texts(records.names), "by name"
    if not names and not records.headed:
        places = texts_by_content(records.sample)
        names, chosen = tuple(records.names[place] for place in places), "by content"
    require(
        bool(names),
        f"don't know which columns of {records.path} hold text: {records.listing()}; name them",
        DataError,
    )
    return TextFile(records.path, names, chosen, records)


def read_texts(
    files: str | Path | Sequence[str | Path | TextFile], columns: Sequence[str | int] = ()
) -> Iterator[str]:
    """All texts of some files; see :func:`open_texts` for the columns.

    Every file is looked at before the first text is given.

    Args:
        files: One path or several, or files that :func:`open_texts` has looked at.
        columns: Which columns of those that are given as paths.
    """
    files = [files] if isinstance(files, (str, Path)) else files
    require(len(files) > 0, "expected at least one file of texts, got none", DataError)
    opened = [file if isinstance(file, TextFile) else open_texts(file, columns) for file in files]
    return (text for file in opened for text in file.texts())
