"""Do words keep their company: the nearest rows of a table before and after it was coded.

Reference:
    Chen, Li, Sun, "Differentiable Product Quantization for End-to-End Embedding Compression",
    ICML 2020, arXiv:1908.09756, appendix C.3, tables 9 to 11.

Differs from the paper:
    The overlap is measured over thousands of rows instead of told of three words, and the
    cosines of the neighbours are compared as well: are they closer than before, or farther?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from smalti.analysis.figures import Listing, bars_of
from smalti.analysis.finding import Finding
from smalti.embeddings.base import BLOCK_ROWS, CompressedEmbedding
from smalti.embeddings.neighbours import nearest_others, shared_neighbours
from smalti.errors import DataError, ShapeError, require

NEIGHBOURS = 10
Table = Tensor | CompressedEmbedding
# Multiplications of a search through the whole table; a larger one is among the rows asked for.
MOST_WORK = 1 << 40


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nearest rows of some rows, in two tables.

    Args:
        rows: ``(n,)`` the rows, in the order of the others.
        before: ``(n, neighbours)`` the nearest rows in the original table, the nearest first.
        after: The same in the coded table.
        before_cosines: How near they are, ``(n, neighbours)``.
        after_cosines: The same in the coded table.
        among: How many rows could be neighbours.
    """

    rows: Tensor
    before: Tensor
    after: Tensor
    before_cosines: Tensor
    after_cosines: Tensor
    among: int

    def overlap(self) -> Tensor:
        """The share ``(n,)`` of each row's neighbours that stay neighbours."""
        return shared_neighbours(self.before, self.after)


@torch.no_grad()
def find_neighbours(
    original: Tensor, coded: Table, rows: Tensor, neighbours: int = NEIGHBOURS
) -> Neighbours:
    """Look for the nearest rows in both tables.

    All rows of a table can be neighbours, unless the search would take minutes: then the rows
    that are asked for are compared with each other, and no other row is decoded.

    Args:
        original: ``(rows, dim)`` the table as it was.
        coded: What became of it: a compressed table, or ``(rows, dim)``.
        rows: Whose neighbours to look for, each once.
        neighbours: How many of each.
    """
    shape = tuple(coded.shape) if isinstance(coded, Tensor) else (coded.rows, coded.dim)
    require(
        tuple(original.shape) == shape,
        f"expected two tables of one shape, got {tuple(original.shape)} and {shape}",
        ShapeError,
    )
    whole = len(rows) * original.numel() <= MOST_WORK
    among = torch.arange(len(original)) if whole else rows.sort().values
    require(
        len(among) > neighbours and len(rows) > 0,
        f"expected more than {neighbours} rows to find neighbours among, got {len(among)}",
        DataError,
    )
    places = torch.searchsorted(among, rows)
    before, before_cosines = nearest_others(taken(original, among), places, neighbours)
    after, after_cosines = nearest_others(taken(coded, among), places, neighbours)
    return Neighbours(rows, among[before], among[after], before_cosines, after_cosines, len(among))


def taken(table: Table, rows: Tensor) -> Tensor:
    """Some rows ``(n, dim)`` of a table; all of them in order cost no copy."""
    if not isinstance(table, Tensor):
        return table.dense() if len(rows) == table.rows else table(rows)
    return table if len(rows) == len(table) else table[rows]


def row_cosines(original: Tensor, coded: Table) -> Tensor:
    """The cosine of each row with what became of it; 1 where both are zero."""
    parts = []
    with torch.no_grad():
        for ids in torch.arange(len(original)).split(BLOCK_ROWS):
            one = original[ids].float()
            other = (coded[ids] if isinstance(coded, Tensor) else coded(ids)).float()
            both_zero = ~(one.any(dim=1) | other.any(dim=1))
            cosines = torch.nn.functional.cosine_similarity(one, other, dim=1)
            parts.append(torch.where(both_zero, 1.0, cosines))
    return torch.cat(parts)


def neighbours(found: Neighbours, words: Sequence[str], examples: Sequence[int] = ()) -> Finding:
    """How many neighbours stay, and what becomes of those of some words.

    Args:
        found: What ``find_neighbours`` gave.
        words: What each row of the table is called.
        examples: Rows to show with their neighbours; those that were not looked at are left out.
    """
    overlap, many = found.overlap(), found.before.shape[1]
    kept = torch.bincount((overlap * many).round().long(), minlength=many + 1)
    numbers = {
        "rows": len(found.rows),
        "among": found.among,
        "neighbours": many,
        "mean_overlap": float(overlap.mean()),
        "rows_by_neighbours_kept": kept.tolist(),
        "nearest_kept": float((found.before[:, 0] == found.after[:, 0]).double().mean()),
        "mean_cosine_before": float(found.before_cosines.double().mean()),
        "mean_cosine_after": float(found.after_cosines.double().mean()),
    }
    place = {row: number for number, row in enumerate(found.rows.tolist())}
    shown = [place[row] for row in examples if row in place]
    closer = float((found.after_cosines - found.before_cosines).double().mean())
    figures = [
        bars_of(
            f"How many of {many} neighbours stay",
            "neighbours kept",
            "rows",
            {str(number): count for number, count in enumerate(kept.tolist())},
        ),
        Listing(
            "Neighbours of some words, the nearest first; a star marks those that were not there",
            ("word", "kept", "before", "after"),
            [_example(found, words, number) for number in shown],
        ),
    ]
    return Finding(
        name="neighbours",
        title="Do words keep their neighbours?",
        caption=(
            f"Of the {many} nearest rows of {len(found.rows):,} rows, "
            f"{numbers['mean_overlap']:.1%} stay among the nearest {many} "
            f"(of {found.among:,} rows); the nearest one stays for {numbers['nearest_kept']:.1%}. "
            f"Neighbours are {abs(closer):.3f} {'closer' if closer >= 0 else 'farther'} in cosine "
            "than before."
        ),
        numbers={
            **numbers,
            "examples": {words[int(found.rows[n])]: _plain(found, words, n) for n in shown},
        },
        figures=figures if shown else figures[:1],
    )


def _plain(found: Neighbours, words: Sequence[str], number: int) -> dict[str, object]:
    return {
        side: [[words[row], round(cosine, 4)] for row, cosine in zip(rows, cosines, strict=True)]
        for side, rows, cosines in (
            ("before", found.before[number].tolist(), found.before_cosines[number].tolist()),
            ("after", found.after[number].tolist(), found.after_cosines[number].tolist()),
        )
    }


def _example(found: Neighbours, words: Sequence[str], number: int) -> tuple[str | int, ...]:
    before, after = found.before[number].tolist(), found.after[number].tolist()
    stay = set(before) & set(after)
    return (
        words[int(found.rows[number])],
        len(stay),
        " ".join(words[row] for row in before),
        " ".join(words[row] + ("" if row in stay else "*") for row in after),
    )
