"""Labelled sets: texts or pairs of texts, each with a score or a class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from smalti.data.columns import SCORE_COLUMNS, known_label, label_by_content
from smalti.data.records import Records, layout_of, open_records
from smalti.data.text import choose_texts
from smalti.errors import DataError, require


@dataclass(frozen=True)
class Labelled:
    """Texts and their labels.

    Args:
        first: The texts, or the first of each pair.
        second: The second of each pair; None where there are single texts.
        labels: Scores as float32, or classes as int64 places in ``classes``.
        classes: The names of the classes; empty for scores.
        source: The file and the columns that were read.
    """

    first: list[str]
    second: list[str] | None
    labels: Tensor
    classes: tuple[str, ...]
    source: str

    def __len__(self) -> int:
        return len(self.first)

    def pick(self, places: Sequence[int]) -> Labelled:
        """Some of the examples, in the given order."""
        return replace(
            self,
            first=[self.first[place] for place in places],
            second=None if self.second is None else [self.second[place] for place in places],
            labels=self.labels[list(places)],
        )

    def without(self, other: Labelled) -> Labelled:
        """The examples whose texts do not stand in another set too."""
        taken = set(zip(other.first, other.second or other.first, strict=True))
        mine = zip(self.first, self.second or self.first, strict=True)
        return self.pick([place for place, texts in enumerate(mine) if texts not in taken])


def read_labelled(
    path: str | Path,
    *,
    texts: Sequence[str | int] = (),
    label: str | int | None = None,
    classes: Sequence[str] = (),
) -> Labelled:
    """Read a labelled set.

    Labels are scores when their column is called so or when one of them is not a whole number,
    and classes otherwise.

    Args:
        path: A TSV, CSV or JSON-lines file; or lines that begin with a label.
        texts: One or two columns, by name or by number from 1 on; guessed when not given.
        label: The column of the label; guessed when not given.
        classes: The names of the classes in order, such as those of a training set. Without
            them all that occur, sorted.
    """
    path = Path(path)
    texts = (texts,) if isinstance(texts, str) else texts
    if layout_of(path) == "lines":
        texts, label = texts or (2,), 1 if label is None else label
    records = open_records(path, (*texts, *([] if label is None else [label])))
    file = choose_texts(records, texts)
    require(
        len(file.columns) in {1, 2},
        f"expected one or two columns of text, got {', '.join(file.columns)}; name them",
        DataError,
    )
    column = _label_column(records, file.columns, label)
    rows: list[tuple[str, ...]] = []
    marks: list[str] = []
    for number, (*values, value) in records.read((*file.columns, column)):
        mark = "" if value is None else str(value).strip()
        require(
            bool(mark) and all(isinstance(text, str) for text in values),
            f"expected text and a label in line {number} of {path}, got "
            f"{str(values)[:60]} and {mark!r}",
            DataError,
        )
        rows.append(tuple(values))
        marks.append(mark)
    require(bool(rows), f"{path} holds no texts", DataError)
    first, *second = (list(texts) for texts in zip(*rows, strict=True))
    scored = not classes and _are_scores(column, marks)
    found = () if scored else tuple(classes) or _sorted(set(marks))
    return Labelled(
        first=first,
        second=second[0] if second else None,
        labels=_scores(marks, path) if scored else _places(marks, found, path),
        classes=found,
        source=f"{file}, label {column}",
    )


def _label_column(records: Records, texts: Sequence[str], label: str | int | None) -> str:
    if label is not None:
        return records.named((label,))[0]
    known = known_label(records.names)
    if known is None and not records.headed:
        places = [records.names.index(column) for column in texts]
        place = label_by_content(records.sample, places)
        known = None if place is None else records.names[place]
    if known is None:
        raise DataError(
            f"don't know which column of {records.path} holds the label: "
            f"{records.listing()}; name it"
        )
    return known


def _are_scores(column: str, marks: Sequence[str]) -> bool:
    if column.casefold() in SCORE_COLUMNS:
        return True
    try:
        return not all(float(mark).is_integer() for mark in marks)
    except ValueError:
        return False


def _scores(marks: Sequence[str], path: Path) -> Tensor:
    try:
        scores = [float(mark) for mark in marks]
    except ValueError as error:
        raise DataError(f"expected numbers as scores in {path}: {error}") from error
    require(all(map(math.isfinite, scores)), f"some scores of {path} are not finite", DataError)
    return torch.tensor(scores, dtype=torch.float32)


def _places(marks: Sequence[str], classes: Sequence[str], path: Path) -> Tensor:
    places = {name: place for place, name in enumerate(classes)}
    strange = sorted(set(marks) - places.keys())
    require(
        not strange,
        f"expected the classes {', '.join(classes)}, got also {', '.join(strange[:5])} in {path}",
        DataError,
    )
    return torch.tensor([places[mark] for mark in marks], dtype=torch.int64)


def _sorted(names: set[str]) -> tuple[str, ...]:
    """In the order of numbers where all are numbers, of the alphabet otherwise."""
    try:
        return tuple(sorted(names, key=float))
    except ValueError:
        return tuple(sorted(names))
