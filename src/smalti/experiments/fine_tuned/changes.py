"""Other tables in the place of a fine-tuned model's own: coded, searched for, or noisy."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from smalti.embeddings import (
    CompressedEmbedding,
    Compressor,
    LowRankTable,
    PartialTable,
    SparseTable,
    UnknownTable,
    build_compressor,
)
from smalti.embeddings.partial import commonest
from smalti.embeddings.sparse import parameters
from smalti.errors import ConfigError, require
from smalti.experiments.fine_tuned.settings import (
    Budget,
    Change,
    Coded,
    FineTunedSettings,
    Noisy,
    Original,
    Searched,
)
from smalti.experiments.fine_tuned.spaces import moved_to
from smalti.experiments.fine_tuned.subjects import Subject, text_file
from smalti.hub import compress
from smalti.hub.choosing.candidates import Table
from smalti.hub.choosing.searching import describe

HALF = 0.5


class Changed(NamedTuple):
    """What stands in the place of a table."""

    dense: Tensor
    """Its rows."""
    table: CompressedEmbedding | None
    """How they are stored; None where as before."""
    bytes: int
    words: str
    """How it was made."""
    seconds: float
    """What computing it took, without the choice between several."""


def changed(subject: Subject, settings: FineTunedSettings, place: Path) -> Changed:
    """The table that an arm asks for."""
    change: Change = settings.change
    if isinstance(change, Coded):
        return _coded(subject, change)
    if isinstance(change, Searched):
        return _searched(subject, change, place)
    dense = subject.table.vectors
    if isinstance(change, Noisy):
        rows = noisy_rows(subject.table, change.rows, subject.generator)
        dense = with_noise(dense, rows, change.size, subject.generator)
        return Changed(dense, None, subject.table.dense_bytes, f"noise on {len(rows)} rows", 0.0)
    assert isinstance(change, Original)  # the only one left
    return Changed(dense, None, subject.table.dense_bytes, "original", 0.0)


def paper_parameters(made: Changed) -> float:
    """How many numbers a table has, as the paper counts; elsewhere, bytes as float32."""
    table = made.table
    if not isinstance(table, PartialTable):
        return made.bytes / 4
    kept, rest, dim = table.kept.rows, table.rest, table.dim
    if isinstance(rest, SparseTable):
        return parameters(kept, rest.rows, dim, rest.neighbours)
    if isinstance(rest, LowRankTable):
        return kept * dim + (rest.rank + int(rest.centred)) * dim + rest.rank * rest.rows
    # The unknown token's row is among those that are kept.
    return kept * dim if isinstance(rest, UnknownTable) else made.bytes / 4


def _coded(subject: Subject, change: Coded) -> Changed:
    first, *others = candidates(subject.table, change)
    best = _fitted(subject, first, change.space)
    if not others:
        return best
    highest = subject.score(subject.figures(best.dense, "valid"))
    for option in others:
        made = _fitted(subject, option, change.space)
        score = subject.score(subject.figures(made.dense, "valid"))
        # Of equals the first stays, which is the simplest.
        if score > highest:
            best, highest = made, score
    return best


def candidates(table: Table, change: Coded) -> list[Compressor]:
    """Of each family the first that fits."""
    families = [[_built(spec, table) for spec in family] for family in change.options]
    if change.within is None:
        return [family[0] for family in families]
    allowed = bytes_within(table, change.within)
    fitting = [
        next((one for one in family if (table.bytes_of(one) or allowed + 1) <= allowed), None)
        for family in families
    ]
    found = [one for one in fitting if one is not None]
    require(len(found) > 0, f"nothing fits into {allowed:,.0f} bytes")
    return found


def bytes_within(table: Table, budget: Budget) -> float:
    """A budget in bytes."""
    return budget.share * table.expected_bytes(_built(budget.of, table))


def _built(spec: dict[str, Any], table: Table) -> Compressor:
    return build_compressor(_with_unknown(spec, table.unknown))


def _with_unknown(spec: dict[str, Any], row: int | None) -> dict[str, Any]:
    """The unknown token's row in the place of the word; each vocabulary has its own."""
    made = {
        key: _with_unknown(value, row) if isinstance(value, dict) else value
        for key, value in spec.items()
    }
    return {**made, "row": row} if made.get("row") == "unknown" else made


def _fitted(subject: Subject, compressor: Compressor, space: str) -> Changed:
    began = time.process_time()
    if space == "fine-tuned":
        table = subject.table.fit(compressor, subject.seed)
    else:
        table = compressor.fit(
            subject.pretrained,
            counts=subject.table.counts,
            special=subject.table.special,
            generator=subject.generator,
        )
        moved_to(table, subject.table.vectors)
    seconds = time.process_time() - began
    return Changed(table.dense(), table, table.size().total, describe(compressor), seconds)


def _searched(subject: Subject, change: Searched, place: Path) -> Changed:
    allowed = bytes_within(subject.table, change.within)
    began = time.process_time()
    with text_file(subject.split.train, place) as path:
        made = compress(
            subject.opened.model,
            path,
            size=allowed / subject.table.dense_bytes,
            labelled=subject.split.valid,
            tokenizer=subject.opened.tokenizer,
            teach=change.teach,
            seed=subject.seed,
        )
    size = made.table.size().total
    if size > allowed:
        raise ConfigError(f"expected a table of at most {allowed:,.0f} bytes, got {size:,}")
    seconds = time.process_time() - began
    return Changed(made.table.dense().detach(), made.table, size, made.figures["table"], seconds)


def noisy_rows(table: Table, which: str, generator: torch.Generator) -> Tensor:
    """The ids ``(n,)`` of rows that get noise; special ones never do."""
    counts = table.counts.clone()
    counts[list(table.special)] = 0
    common = commonest(counts, HALF, [])
    seen = torch.nonzero(counts > 0).flatten()
    rare = seen[~torch.isin(seen, common)]
    if which == "common, as often":
        mixed = common[torch.randperm(len(common), generator=generator)]
        often = counts[mixed].cumsum(0) <= counts[rare].sum()
        return mixed[often].sort().values
    unseen = torch.ones(table.rows, dtype=torch.bool)
    unseen[seen] = False
    unseen[list(table.special)] = False
    return {"common": common, "rare": rare, "unseen": torch.nonzero(unseen).flatten()}[which]


def with_noise(rows: Tensor, ids: Tensor, size: float, generator: torch.Generator) -> Tensor:
    """Rows some of which are moved in random directions, by a share of their lengths."""
    noise = torch.randn(len(ids), rows.shape[1], generator=generator)
    lengths = rows[ids].norm(dim=1, keepdim=True)
    made = rows.clone()
    made[ids] += size * lengths * noise / noise.norm(dim=1, keepdim=True)
    return made
