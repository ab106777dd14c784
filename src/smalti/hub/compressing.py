"""Compresses a model's embedding table: survey the text, choose, calibrate, replace, save."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from smalti.data import Labelled, TokenCounts
from smalti.embeddings import CompressedEmbedding, Compressor
from smalti.errors import require
from smalti.hub.card import model_card
from smalti.hub.choosing.judging import Judge
from smalti.hub.choosing.searching import LADDER, Search, Trial, describe
from smalti.hub.choosing.survey import Survey, survey, text_files
from smalti.hub.choosing.wish import Wish, as_wish, check_wish, named_compressor, searched
from smalti.hub.groups import find_group
from smalti.hub.library import Model
from smalti.hub.opening import Opened
from smalti.hub.preparing import TAUGHT, measure_of, opened_model, table_of, teacher_of
from smalti.hub.replacing import replace_table
from smalti.hub.saving import save_model


@dataclass(frozen=True, eq=False)
class Compressed:
    """A model with a compressed table, and what is known about it.

    Args:
        model: The model, ready for use.
        tokenizer: Its tokenizer.
        table: The compressed table inside it.
        figures: Sizes, what was lost, how long it took.
        trials: All tables that were tried.
        notes: What the user should know.
        source: Where the original came from.
        original: ``(rows, dim)`` the table that it was made from.
        counts: How often each row is used.
    """

    model: Model
    tokenizer: Any
    table: CompressedEmbedding
    figures: dict[str, Any]
    trials: list[Trial]
    notes: tuple[str, ...]
    source: Path | None
    original: Tensor
    counts: TokenCounts

    def save(self, directory: str | Path, *, overwrite: bool = False) -> Path:
        """Write a directory that ``AutoModel.from_pretrained`` opens once smalti is imported."""
        shown = {key.replace("_", " "): value for key, value in self.figures.items()}
        return save_model(
            self.model,
            self.tokenizer,
            directory,
            card=model_card(self.model, shown),
            source=self.source,
            overwrite=overwrite,
        )


def compress(
    model: str | Path | Model,
    text: str | Path | Sequence[str | Path] = (),
    *,
    size: str | float | None = None,
    max_drop: str | float | None = None,
    method: str | Compressor | None = None,
    settings: Mapping[str, Any] | None = None,
    keep: float | None = None,
    kept: str | None = None,
    columns: Sequence[str | int] = (),
    counts: str | Path | TokenCounts | None = None,
    labelled: Labelled | None = None,
    tokenizer: Any = None,
    teach: bool | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Compressed:
    """Make a model's embedding table smaller.

    Args:
        model: A directory, a ``.gguf`` file, a name on the Hub, or a loaded model.
        text: Files with the kind of text that the model is used on.
        size: The most that the table may take: ``"4%"`` or ``0.04`` of float32.
        max_drop: The most that may be lost: ``"0.5%"`` or ``0.005`` of the labelled score if
            there are labels, else of the mean cosine of outputs.
        method: A registered compressor; by default the best one is searched for.
        settings: The method's settings.
        keep: Rows to keep: a share of the rows that occur, or a whole number of rows.
        kept: How kept rows are stored, such as ``"int8"``.
        columns: Which columns of the text files hold text.
        counts: Saved token counts in the place of those of the text.
        labelled: Scored pairs, or classes, to judge by.
        tokenizer: The tokenizer of a loaded model.
        teach: Whether codewords learn from the model's outputs afterwards; None lets those of
            a method that was searched for do so, and leaves a named one as it is.
        seed: Where random choices come from.
        progress: Whether to draw bars on stderr; None does so on a terminal.
    """
    begun = time.perf_counter()
    wish = as_wish(
        size,
        max_drop,
        method=method,
        settings=settings or {},
        keep=keep,
        kept=kept,
        teach=teach,
    )
    check_wish(wish)
    files = text_files(text, columns)
    opened = opened_model(model, tokenizer)
    known = survey(
        opened.tokenizer,
        find_group(opened.model).rows,
        files,
        counts=counts,
        seed=seed,
        progress=progress,
    )
    trials, trial, table = made_table(opened, known, wish, labelled, seed, progress)
    dense, verdict, chosen = 4 * table.rows * table.dim, trial.verdict, trial.compressor
    figures = {
        "table": trial.words,
        "bytes": table.size().total,
        "float32_bytes": dense,
        "percent": round(100 * table.size().total / dense, 3),
        "times_smaller": round(dense / table.size().total, 1),
        "output_cosine": round(verdict.cosine, 4),
        "score": None if verdict.score is None else round(verdict.score, 3),
        "original_score": None if verdict.original is None else round(verdict.original, 3),
        "drop_percent": round(verdict.drop, 3),
        "seconds": round(time.perf_counter() - begun, 1),
    }
    figures = {key: value for key, value in figures.items() if value is not None}
    original = find_group(opened.model).weight.detach()
    small = replace_table(
        opened.model,
        table,
        name=str(opened.name),
        figures=figures,
        compressor=chosen.spec(),
        text=[Path(source).name for source in known.counts.sources],
    )
    notes = (*known.notes, *_warnings(wish, opened, trial))
    return Compressed(
        small,
        opened.tokenizer,
        table,
        figures,
        trials,
        notes,
        opened.path,
        original,
        known.counts,
    )


def plan(
    model: str | Path | Model,
    text: Sequence[str | Path] = (),
    *,
    columns: Sequence[str | int] = (),
    counts: str | Path | TokenCounts | None = None,
    seed: int = 0,
    ladder: Sequence[float] = LADDER,
    every_method: bool = False,
    **wishes: Any,
) -> dict[str, Any]:
    """What :func:`compress` would do: the table, its places, the tables it may try.

    Args:
        model: As for :func:`compress`; so are ``text``, ``columns``, ``counts`` and ``seed``.
        text: Files with text.
        columns: Which columns of them hold text.
        counts: Saved token counts.
        seed: Where random choices come from.
        ladder: Sizes in percent, where none is asked for.
        every_method: Whether all methods would be tried.
        **wishes: What is asked for: ``size``, ``max_drop``, ``method`` and so on.
    """
    wish = as_wish(**wishes)
    check_wish(wish)
    files = text_files(text, columns)
    opened = opened_model(model)
    group = find_group(opened.model)
    known = survey(opened.tokenizer, group.rows, files, counts=counts, seed=seed)
    measure = measure_of(opened, known, seed, None)
    table = table_of(opened, known, choosing=not wish.named, measure=measure)
    if wish.named:
        chosen = [named_compressor(table, wish)]
    else:
        chosen = [
            compressor
            for some in (ladder if wish.percent is None else (wish.percent,))
            for compressor in Search.candidates(table, some, seed, every_method=every_method)
        ]
    require(len(chosen) > 0, "no table fits: allow a larger size")
    return {
        "model": str(opened.name),
        "kind": opened.kind,
        "rows": group.rows,
        "dim": group.dim,
        "float32_bytes": table.dense_bytes,
        "stands_at": group.names,
        "rows_in_use": known.counts.occurring,
        "tokens_counted": known.counts.tokens,
        "would_try": {describe(c): table.expected_bytes(c) for c in chosen},
        "notes": list(known.notes),
    }


def made_table(
    opened: Opened,
    known: Survey,
    wish: Wish,
    labelled: Labelled | None,
    seed: int,
    progress: bool | None,
) -> tuple[list[Trial], Trial, CompressedEmbedding]:
    """What was tried on the way, the trial that was chosen, and its table."""
    judge = Judge(opened, known.judging, labelled)
    measure = measure_of(opened, known, seed, progress)
    table = table_of(opened, known, choosing=False, measure=measure)
    final = Search(table, judge, seed=seed, progress=progress)
    if wish.named:
        trial = final.attempt(named_compressor(final.table, wish))
        teacher = teacher_of(opened, known, seed, progress) if wish.teach else None
        if teacher is not None:
            trial = final.teach(trial, teacher)
        return [], trial, final.fitted(trial)
    table = table_of(opened, known, choosing=True, measure=measure)
    search = Search(table, judge, seed=seed, progress=progress)
    found = searched(search, wish)
    # Fitted again with the words of the texts that judged, where as many rows fit then.
    dense = final.table.dense_bytes
    size = final.table.bytes_of(found.compressor)
    again = final if size is not None and wish.allows(size, dense, drop=0.0) else search
    trial = again.attempt(found.compressor)
    teacher = None if wish.teach is False else teacher_of(opened, known, seed, progress)
    if teacher is not None:
        trial = again.teach(trial, teacher)
    if wish.allows(trial.bytes, dense, trial.verdict.drop):
        return search.trials, trial, again.fitted(trial)
    return search.trials, found, search.fitted(found)


def _warnings(wish: Wish, opened: Opened, trial: Trial) -> list[str]:
    """What came out otherwise than the user may have expected."""
    said = []
    if trial.percent >= 100:
        said.append("the table is not smaller than as float32: keep fewer rows, or use fewer codes")
    if wish.teach and opened.kind not in TAUGHT:
        said.append(f"codewords of a {opened.kind} model do not learn from its outputs")
    return said
