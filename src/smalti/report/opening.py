"""What lies at a path, and its report: here models, tables, runs and searches meet.

Whatever is wrong with a path is found before anything is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from smalti.artifacts import MANIFEST, read_manifest
from smalti.data import TokenCounts, count_tokens, open_texts, read_texts
from smalti.embeddings.base import CompressedEmbedding
from smalti.embeddings.saving import KIND as TABLE
from smalti.embeddings.saving import load_table
from smalti.errors import ArtifactError, ConfigError, DataError, SmaltiError, require
from smalti.hub.library import transformers_library
from smalti.recipes.images.codebook_balance.study import RESULTS as STUDY
from smalti.recipes.images.saved_run import KIND as IMAGES
from smalti.recipes.run_directories import FOLDER
from smalti.recipes.translation.saved_run import KIND as TRANSLATION
from smalti.report.frontiers import read_search, report_frontier, report_study
from smalti.report.image_runs import report_run
from smalti.report.page import Report
from smalti.report.tables import NEIGHBOUR_ROWS, TableSubject, report_table
from smalti.report.translation_runs import report_translation

EXPECTED = (
    "expected a model that smalti compress wrote, a saved table, a run of smalti train, or what "
    "smalti tune wrote"
)


def make_report(
    path: str | Path,
    against: str | Path | None = None,
    *,
    text: Sequence[str | Path] = (),
    columns: Sequence[str | int] = (),
    counts: str | Path | None = None,
    words: Sequence[str] = (),
    data: str | None = None,
    split: str | None = None,
    size: int | None = None,
    neighbour_rows: int = NEIGHBOUR_ROWS,
    progress: bool | None = None,
) -> Report:
    """The report of whatever lies at a path.

    Args:
        path: A compressed model or table, an image run, or a file of ``smalti tune table``.
        against: The original of a model or table: a model, or a saved table. Without it, the
            model that it was made from, where that is at hand.
        text: Files with text, for findings by frequency.
        columns: Which columns of them hold text.
        counts: Saved token counts, in the place of those of a text.
        words: Words whose codes and neighbours are shown.
        data: Images for a run.
        split: Which part of them.
        size: To resize them to.
        neighbour_rows: Of how many rows neighbours are looked for.
        progress: Whether to draw bars on stderr; None does so on a terminal.
    """
    place = Path(path).expanduser()
    kind = kind_at(place)
    of_tables = [against, counts, *text, *columns, *words]
    if kind not in {"table", "model"} and any(given is not None for given in of_tables):
        raise ConfigError(f"{place} holds no table: --against, --text and the like do not fit it")
    if kind != "run" and any(given is not None for given in (data, split, size)):
        raise ConfigError(f"{place} holds no image model: images do not fit it")
    if kind == "run":
        return report_run(place, data, split, size)
    if kind == "frontier":
        return report_frontier(read_search(place), str(place))
    if kind == "translation":
        return report_translation(place)
    if kind == "study":
        return report_study(read_search(place / STUDY, "arms"), place.resolve().name)
    subject, tokenizer = open_subject(place, against)
    if text or counts is not None:
        subject = _counted(subject, tokenizer, text, columns, counts, progress)
    return report_table(subject, words=words, neighbour_rows=neighbour_rows, progress=progress)


def kind_at(place: Path) -> str:
    """What lies at a path.

    Returns:
        ``"table"``, ``"model"``, ``"run"`` of images, ``"translation"``, ``"frontier"`` or
        ``"study"``.
    """
    if place.is_file():
        require(place.suffix == ".json", f"{place} is a file; {EXPECTED}", ArtifactError)
        return "frontier"
    require(place.is_dir(), f"there is nothing at {place}; {EXPECTED}", ArtifactError)
    inner = place / FOLDER
    if not (place / MANIFEST).is_file() and (inner / MANIFEST).is_file():
        place = inner
    if (place / MANIFEST).is_file():
        kind = str(read_manifest(place)["kind"])
        known = {TABLE: "table", IMAGES: "run", TRANSLATION: "translation"}
        require(kind in known, f"{place} holds a {kind}; {EXPECTED}", ArtifactError)
        return known[kind]
    if (place / STUDY).is_file():
        return "study"
    require(
        (place / "config.json").is_file(),
        f"{place} holds something else; {EXPECTED}",
        ArtifactError,
    )
    return "model"


def open_subject(place: Path, against: str | Path | None = None) -> tuple[TableSubject, Any]:
    """A table with what is known about it, and its tokenizer where there is one.

    Args:
        place: A compressed model or a saved table.
        against: Its original; None for the one it was made from, where that is at hand.
    """
    if kind_at(place) == "table":
        saved = load_table(place)
        subject = TableSubject(place.resolve().name, saved.table, tokens=saved.tokens or ())
        if against is not None:
            subject = replace(subject, original=original_table(against))
        return subject, None
    return _open_model(place, against)


def _open_model(place: Path, against: str | Path | None) -> tuple[TableSubject, Any]:
    transformers_library()
    from smalti.hub.evaluating import open_checked  # noqa: PLC0415  (transformers is an extra)
    from smalti.hub.groups import input_embedding  # noqa: PLC0415
    from smalti.hub.loading import checked_directory  # noqa: PLC0415

    checked_directory(place)
    opened = open_checked(place)
    table: CompressedEmbedding = input_embedding(opened.model).table
    origin = opened.model.config.quantization_config.origin
    name, notes = str(origin.get("name") or ""), []
    original: Tensor | None = None
    if against is not None:
        original = original_table(against)
        notes.append(f"Compared with {against}.")
    elif name:
        try:
            original = _at_hand(name)
            notes.append(f"Compared with {name}, which it was made from.")
        except SmaltiError:
            notes.append(f"The original, {name}, is not at hand: give it with --against.")
        if original is not None and tuple(original.shape) != (table.rows, table.dim):
            original = None
            notes[-1] = f"{name} has another table now: give the original with --against."
    subject = TableSubject(
        name=f"{place.resolve().name}, made from {name}" if name else place.resolve().name,
        table=table,
        original=original,
        tokens=tokens_of(opened.tokenizer, table.rows),
        figures=origin.get("figures") or {},
        notes=notes,
    )
    return subject, opened.tokenizer


def original_table(name: str | Path) -> Tensor:
    """The dense table of a model or of a saved table."""
    place = Path(name).expanduser()
    if (place / MANIFEST).is_file():
        return load_table(place).table.dense()
    transformers_library()
    from smalti.hub.evaluating import open_checked  # noqa: PLC0415  (transformers is an extra)
    from smalti.hub.groups import input_embedding  # noqa: PLC0415
    from smalti.hub.modules import TableEmbedding  # noqa: PLC0415

    embedding = input_embedding(open_checked(name).model)
    if isinstance(embedding, TableEmbedding):
        return embedding.table.dense()
    weight = getattr(embedding, "weight", None)
    if not isinstance(weight, Tensor) or weight.dim() != 2:
        raise DataError(f"{name} has no table of vectors to compare with")
    return weight.detach()


def _at_hand(name: str) -> Tensor | None:
    """The table of a model that needs no network; None where it does."""
    from smalti.hub.opening import PACKAGED  # noqa: PLC0415  (transformers is an extra)

    if name not in PACKAGED and not Path(name).expanduser().exists():
        raise DataError(f"{name} is not at hand")
    return original_table(name)


def tokens_of(tokenizer: Any, rows: int) -> list[str | None]:
    """What each row of a model's table stands for; None for rows without a token."""
    tokens: list[str | None] = [None] * rows
    if tokenizer is not None:
        for token, row in tokenizer.get_vocab().items():
            if 0 <= row < rows:
                tokens[row] = str(token)
    return tokens


def _counted(
    subject: TableSubject,
    tokenizer: Any,
    text: Sequence[str | Path],
    columns: Sequence[str | int],
    counts: str | Path | None,
    progress: bool | None,
) -> TableSubject:
    require(
        tokenizer is not None,
        f"{subject.name} has no tokenizer, so that nothing can be counted",
    )
    files = [open_texts(path, columns) for path in text]
    rows = subject.table.rows
    if counts is not None:
        found = TokenCounts.load(counts, tokenizer, rows)
        source = str(counts)
    else:
        found = count_tokens(read_texts(files), tokenizer, rows, progress=progress)
        source = ", ".join(str(file) for file in files)
    return replace(
        subject,
        counts=found.counts.to(torch.int64),
        texts=(read_texts(files), tokenizer) if files else None,
        notes=[*subject.notes, f"Rows are ordered by their use in {source}."],
    )
