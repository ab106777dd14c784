"""Neighbours of words in a coded table and in a full one that was trained alike."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from smalti.analysis import find_neighbours, neighbours
from smalti.analysis.neighbours import Neighbours
from smalti.analysis.shared_codes import MOST_CODES, shared_by_chance
from smalti.embeddings.coded import CodedTable
from smalti.embeddings.tiers import tiers
from smalti.experiments.kinds.base import Kind, Measured, kinds
from smalti.experiments.kinds.texts import coded_table, learned_by, scores_of

# Far from the seeds of any table: another start of the same training.
OTHER_START = 1000
# Pairs of words whose codes are listed.
LISTED = 12


@kinds.register("table_neighbours")
class TableNeighbours(Kind):
    """Settings are those of ``texts``, and ``common``: how many of the commonest words to ask.

    Without ``embedding`` the full table is compared with one of another seed: how many
    neighbours stay says little, unless it is known how many a second training keeps.
    """

    def measure(self, settings: dict[str, Any], seed: int, place: Path) -> Measured:
        """Train a full table and another one, and look for the nearest rows in both."""
        common = settings.pop("common")
        coded = settings.get("embedding") is not None
        full = learned_by({**settings, "embedding": None}, seed, place / "full")
        own_seed = seed if coded else seed + OTHER_START
        own = learned_by(settings, own_seed, place / "own")
        asked = torch.arange(min(common, len(own.words)))
        near = find_neighbours(full.table(), own.table(), asked)
        numbers = neighbours(near, own.words).numbers
        table = coded_table(own)
        codes = None if table is None else _codes(table)
        return Measured(
            {
                **scores_of(own),
                "overlap": numbers["mean_overlap"],
                "nearest_kept": numbers["nearest_kept"],
                "cosine": numbers["mean_cosine_after"],
                "full_cosine": numbers["mean_cosine_before"],
                **({} if codes is None else _shared(codes, asked, near.before[:, 0])),
            },
            {
                "neighbours": numbers,
                "full": full.outcome.as_dict(),
                "own": own.outcome.as_dict(),
                **({} if codes is None else _listing(codes, asked, near, own.words)),
            },
        )


def _codes(table: CodedTable) -> Tensor:
    (tier,) = tiers(table)
    return tier.codes()


def _listing(codes: Tensor, rows: Tensor, near: Neighbours, words: Sequence[str]) -> dict[str, Any]:
    """The codes of the pairs of words that are closest in the full table; few enough to read."""
    if codes.shape[1] > MOST_CODES:
        return {}
    listed: list[list[str]] = []
    told: set[int] = set()
    for place in near.before_cosines[:, 0].argsort(descending=True).tolist():
        pair = [int(rows[place]), int(near.before[place, 0])]
        if told.isdisjoint(pair) and len(listed) < LISTED:
            told.update(pair)
            listed.append([*(words[row] for row in pair), *(_written(codes[row]) for row in pair)])
    columns = ["word", "nearest in the full table", "its codes", "the nearest one's"]
    return {"listing": {"columns": columns, "rows": listed}}


def _written(codes: Tensor) -> str:
    return " ".join(map(str, codes.tolist()))


def _shared(codes: Tensor, rows: Tensor, nearest: Tensor) -> dict[str, float]:
    """How many codes words have in common with the nearest ones, and by chance."""
    return {
        "shared_codes": float((codes[rows] == codes[nearest]).sum(dim=1).double().mean()),
        "shared_by_chance": shared_by_chance(codes[rows]),
    }
