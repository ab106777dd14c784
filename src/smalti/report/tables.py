"""The report of a compressed table: what it takes, what was lost, what its codes look like."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from smalti.analysis import (
    CodeGroup,
    Finding,
    Neighbours,
    code_distribution,
    coverage,
    entropy_and_information,
    find_neighbours,
    frequency_bands,
    neighbours,
    rank,
    rate_distortion,
    shared_codes,
    storage,
)
from smalti.analysis.frequency_bands import kept_rows
from smalti.analysis.neighbours import NEIGHBOURS, row_cosines
from smalti.analysis.storage import commonest
from smalti.embeddings.base import CompressedEmbedding
from smalti.embeddings.tiers import Tier, tiers
from smalti.errors import ShapeError, require
from smalti.progress import progress_bar
from smalti.report.examples import example_rows
from smalti.report.mosaic import mosaic
from smalti.report.page import Report
from smalti.report.table_headline import table_headline
from smalti.report.token_index import token_index
from smalti.report.words import all_visible

# Rows whose neighbours are looked for.
NEIGHBOUR_ROWS = 20_000


@dataclass(frozen=True, eq=False)
class TableSubject:
    """A table, and all that is known about it.

    Args:
        name: What to call it.
        table: The compressed table.
        original: ``(rows, dim)`` what it was made from.
        tokens: What each row stands for.
        counts: ``(rows,)`` how often each row is used.
        texts: Texts for coverage, and the tokenizer that reads them.
        figures: What was measured of the model: ``output_cosine``, ``score``, ``original_score``.
        trials: Tables that were tried on the way.
        notes: Where this comes from.
    """

    name: str
    table: CompressedEmbedding
    original: Tensor | None = None
    tokens: Sequence[str | None] = ()
    counts: Tensor | None = None
    texts: tuple[Iterable[str], Any] | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)
    trials: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[str] = ()


def report_table(
    subject: TableSubject,
    *,
    words: Sequence[str] = (),
    neighbour_rows: int = NEIGHBOUR_ROWS,
    progress: bool | None = None,
) -> Report:
    """Analyse a table; a large one is decoded a few rows at a time.

    Args:
        subject: The table.
        words: Words whose codes and neighbours are shown; some are chosen where none is given.
        neighbour_rows: Of how many rows, the commonest, neighbours are looked for.
        progress: Whether to draw a bar on stderr; None does so on a terminal.
    """
    table, original = subject.table, _checked(subject)
    shown = all_visible(subject.tokens, table.rows)
    parts = tiers(table)
    order = _order(subject, parts)
    # Two tiers may have as many codes, but not be called the same.
    groups = [
        CodeGroup(f"{part.words} ({len(part.ids):,} rows)", part.codes(), part.code_sizes)
        for part in parts
        if _coded(part)
    ]
    found: list[Finding] = []
    near: Neighbours | None = None
    cosines: Tensor | None = None
    with progress_bar("looking at the table", "questions", total=6, shown=progress) as advance:
        found.append(storage(table, subject.counts))
        if subject.trials:
            found.append(rate_distortion(subject.trials))
        found.extend(_by_use(subject))
        advance(1)
        if original is not None:
            cosines = row_cosines(original, table)
            advance(1)
            near = _near(original, table, order[:neighbour_rows])
        if near is not None:
            chosen = example_rows(shown, near.rows.tolist(), words)
            found.append(neighbours(near, shown, chosen[:10]))
        advance(1)
        if groups:
            found.append(code_distribution(groups))
            advance(1)
            found.append(entropy_and_information(groups))
            advance(1)
            found.extend(_sharing(parts, groups, shown, order, words))
            found.append(rank(table, original))
        advance(1)
    return Report(
        headline=table_headline(subject.name, found, subject.figures, cosines),
        findings=found,
        tokens=token_index(
            shown, parts, order, counts=subject.counts, cosines=cosines, neighbours=near
        ),
        mosaic=mosaic(groups),
        notes=subject.notes,
    )


def _checked(subject: TableSubject) -> Tensor | None:
    if subject.original is None:
        return None
    table = subject.table
    require(
        tuple(subject.original.shape) == (table.rows, table.dim),
        f"expected an original of {table.rows} x {table.dim}, as {subject.name} is, got "
        f"{' x '.join(map(str, subject.original.shape))}: it is another model's",
        ShapeError,
    )
    return subject.original.detach().float().cpu()


def _coded(part: Tier) -> bool:
    return len(part.code_sizes) > 0 and len(part.ids) > 0


def _order(subject: TableSubject, parts: Sequence[Tier]) -> Tensor:
    """All rows, the commonest first; without counts, those that are stored better first."""
    if subject.counts is not None:
        return commonest(subject.counts, subject.table.rows, subject.table.rows)
    return torch.cat([part.ids for part in parts])


def _by_use(subject: TableSubject) -> Iterator[Finding]:
    if subject.original is not None and subject.counts is not None:
        yield frequency_bands(subject.original, subject.table, subject.counts)
    kept = kept_rows(subject.table).nonzero().flatten()
    if subject.texts is not None and len(kept):
        texts, tokenizer = subject.texts
        yield coverage(texts, tokenizer, kept, subject.table.rows)


def _near(original: Tensor, table: CompressedEmbedding, rows: Tensor) -> Neighbours | None:
    if len(original) <= 2 * NEIGHBOURS or len(rows) <= NEIGHBOURS:
        return None
    return find_neighbours(original, table, rows)


def _sharing(
    parts: Sequence[Tier],
    groups: Sequence[CodeGroup],
    shown: Sequence[str],
    order: Tensor,
    words: Sequence[str],
) -> Iterator[Finding]:
    """The codes of some words, from the tier that has most of them."""
    place = torch.empty(len(shown), dtype=torch.int64)
    place[order] = torch.arange(len(order))
    best: tuple[list[int], Tier, CodeGroup] | None = None
    for part, group in zip(filter(_coded, parts), groups, strict=True):
        own = part.ids[place[part.ids].argsort()].tolist()
        chosen = example_rows(shown, own, words)
        if best is None or len(chosen) > len(best[0]):
            best = chosen, part, group
    if best is None or len(best[0]) < 2:
        return
    chosen, part, group = best
    rows = torch.searchsorted(part.ids, torch.tensor(chosen)).tolist()
    yield shared_codes(group, [shown[row] for row in chosen], rows)
