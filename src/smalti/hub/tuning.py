"""Tunes a model's table: tries methods and sizes, and returns the frontier of what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smalti.data import Labelled, TokenCounts
from smalti.errors import ConfigError, require
from smalti.hub.choosing.journal import Journal, about
from smalti.hub.choosing.judging import Judge
from smalti.hub.choosing.searching import Search, Trial
from smalti.hub.choosing.survey import survey, text_files
from smalti.hub.choosing.wish import as_wish, searched
from smalti.hub.groups import find_group
from smalti.hub.library import Model
from smalti.hub.preparing import measure_of, opened_model, table_of, teacher_of

# Sizes of the frontier, in percent of float32, where none is asked for.
SIZES = (2.5, 4.0, 7.0, 12.0, 20.0)


@dataclass(frozen=True)
class Tuned:
    """All tables that were tried.

    Args:
        best: The best within the budget; None where no budget was given.
        trials: All, in the order they were tried.
        frontier: Those that no other beats at the same size or less.
        notes: What the user should know about the text.
    """

    best: Trial | None
    trials: list[Trial]
    frontier: list[Trial]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "best": None if self.best is None else self.best.as_dict(),
            "frontier": [trial.as_dict() for trial in self.frontier],
            "trials": [trial.as_dict() for trial in self.trials],
            "notes": list(self.notes),
        }


def tune_table(
    model: str | Path | Model,
    text: str | Path | Sequence[str | Path] = (),
    *,
    size: str | float | None = None,
    max_drop: str | float | None = None,
    columns: Sequence[str | int] = (),
    counts: str | Path | TokenCounts | None = None,
    labelled: Labelled | None = None,
    tokenizer: Any = None,
    every_method: bool = True,
    teach: bool = True,
    seed: int = 0,
    progress: bool | None = None,
    journal: Path | None = None,
) -> Tuned:
    """Try tables of every method and say what each costs and loses.

    Args:
        model: A directory, a ``.gguf`` file, a name on the Hub, or a loaded model.
        text: Files with the kind of text that the model is used on.
        size: The most that the table may take: ``"4%"`` or ``0.04`` of float32.
        max_drop: The most that may be lost: ``"0.5%"`` of the labelled score if there are
            labels, else of the mean cosine of outputs. With neither, a ladder of sizes.
        columns: Which columns of the text files hold text.
        counts: Saved token counts in the place of those of the text.
        labelled: Scored pairs, or classes, to judge by.
        tokenizer: The tokenizer of a loaded model.
        every_method: Also try the methods that tiers of codes usually beat.
        teach: Whether the best table of a size also learns from the model's outputs.
        seed: Where random choices come from.
        progress: Whether to draw bars on stderr; None does so on a terminal.
        journal: A file that trials are written to as they are made, and taken from when the
            same search is begun again; it is removed at the end.
    """
    require(size is None or max_drop is None, "give a size or a largest drop, not both")
    wish = as_wish(size, max_drop)
    files = text_files(text, columns)
    opened = opened_model(model, tokenizer)
    rows = find_group(opened.model).rows
    known = survey(
        opened.tokenizer,
        rows,
        files,
        counts=counts,
        seed=seed,
        progress=progress,
    )
    judge = Judge(opened, known.judging, labelled)
    measure = measure_of(opened, known, seed, progress)
    table = table_of(opened, known, choosing=True, measure=measure)
    subject = about(table, known.judging, labelled, model=str(opened.name), seed=seed)
    notes = Journal(journal, subject)
    search = Search(table, judge, seed=seed, progress=progress, journal=notes)
    teacher = teacher_of(opened, known, seed, progress) if teach else None
    best = None
    if size is None and max_drop is None:
        for some in SIZES:
            try:
                trial = search.within(some, every_method=every_method)
            except ConfigError:
                # Small tables have no method for the smallest sizes.
                continue
            if teacher is not None:
                search.teach(trial, teacher)
        require(len(search.trials) > 0, "no method fits this table: it is too small to code")
    else:
        best = searched(search, wish, every_method=every_method)
        if teacher is not None:
            best = search.teach(best, teacher)
    notes.close()
    return Tuned(best, search.trials, search.frontier(), known.notes)
