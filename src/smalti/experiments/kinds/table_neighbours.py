"""Neighbours of words in a coded table and in a full one that was trained alike."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

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
# Words that are listed, and neighbours of each.
LISTED, TOLD = 12, 5


@kinds.register("table_neighbours")
class TableNeighbours(Kind):
    """Settings are those of ``texts``, and ``common``: how many of the commonest words to ask.

    Without ``embedding`` the full table is compared with one of another seed: how many
    neighbours stay says little, unless it is known how many a second training keeps.
    """

    together: ClassVar[bool] = True

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
                "listing": _listing(codes, near, own.words),
            },
        )


def _codes(table: CodedTable) -> Tensor:
    (tier,) = tiers(table)
    return tier.codes()


def _listing(codes: Tensor | None, near: Neighbours, words: Sequence[str]) -> dict[str, Any]:
    """Words that are closest to another in the full table: their codes, if few, or neighbours."""
    places = _closest(near)
    if codes is None or codes.shape[1] > MOST_CODES:
        columns = ["word", "nearest in the full table", "nearest in this one"]
        sides = ((near.before, near.before_cosines), (near.after, near.after_cosines))
        rows = [
            [words[int(near.rows[place])], *(_told(*side, place, words) for side in sides)]
            for place in places
        ]
        return {"columns": columns, "rows": rows}
    columns = ["word", "nearest in the full table", "its codes", "the nearest one's"]
    pairs = [(int(near.rows[place]), int(near.before[place, 0])) for place in places]
    listed = [
        [*(words[row] for row in pair), *(_written(codes[row]) for row in pair)] for pair in pairs
    ]
    return {"columns": columns, "rows": listed}


def _closest(near: Neighbours) -> list[int]:
    """Places of the words whose nearest one is closest, no word twice."""
    places: list[int] = []
    told: set[int] = set()
    for place in near.before_cosines[:, 0].argsort(descending=True).tolist():
        pair = {int(near.rows[place]), int(near.before[place, 0])}
        if told.isdisjoint(pair) and len(places) < LISTED:
            told |= pair
            places.append(place)
    return places


def _told(found: Tensor, cosines: Tensor, place: int, words: Sequence[str]) -> str:
    """The first neighbours of a word with their cosines."""
    pairs = zip(found[place, :TOLD].tolist(), cosines[place, :TOLD].tolist(), strict=True)
    return ", ".join(f"{words[row]} {cosine:.2f}" for row, cosine in pairs)


def _written(codes: Tensor) -> str:
    return " ".join(map(str, codes.tolist()))


def _shared(codes: Tensor, rows: Tensor, nearest: Tensor) -> dict[str, float]:
    """How many codes words have in common with the nearest ones, and by chance."""
    return {
        "shared_codes": float((codes[rows] == codes[nearest]).sum(dim=1).double().mean()),
        "shared_by_chance": shared_by_chance(codes[rows]),
    }
