"""How close a smaller table is to the original, for common rows and for rare ones."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from smalti.analysis.figures import Bars, Series
from smalti.analysis.finding import Finding
from smalti.embeddings.base import BLOCK_ROWS, CompressedEmbedding
from smalti.embeddings.border import checked_counts, checked_table
from smalti.embeddings.full import FullTable
from smalti.embeddings.integer import IntegerTable
from smalti.embeddings.tiers import tiers
from smalti.errors import ConfigError, ShapeError, require


def frequency_bands(original: Tensor, compressed: CompressedEmbedding, counts: Tensor) -> Finding:
    """Cosine, relative squared error and coverage by how often rows are used.

    A band holds counts of as many digits: 1-9, 10-99 and so on; rows that do not occur are a
    band of their own. The cosine of two zero vectors is 1, of one zero vector 0. Rows count as kept
    that are stored one by one instead of as codes.

    Args:
        original: ``(rows, dim)``.
        compressed: The smaller table.
        counts: ``(rows,)`` how often each row is used.
    """
    original = checked_table(original)
    require(
        original.shape == (compressed.rows, compressed.dim),
        f"expected the original of a ({compressed.rows}, {compressed.dim}) table, "
        f"got {tuple(original.shape)}",
        ShapeError,
    )
    weights = checked_counts(counts, len(original))
    if weights is None:
        raise ConfigError("expected counts, one a row, got None: bands are made of them")
    cosines, errors, squares = _compared(original, compressed)
    powers = 10.0 ** torch.arange(0, 19, dtype=torch.float64)
    # Place 0 is for rows that do not occur, 1 for fractions, 2 for 1-9, 3 for 10-99.
    place = torch.where(weights > 0, torch.bucketize(weights, powers, right=True) + 1, 0)
    kept = kept_rows(compressed)
    bands = [
        _band(_name(int(band)), place == band, weights, kept, cosines, errors, squares)
        for band in place.unique()
    ]
    shares = weights / weights.sum()
    numbers = {
        "bands": bands,
        "mean_cosine": float(cosines.mean()),
        "relative_squared_error": _ratio(errors.sum(), squares.sum()),
        "mean_cosine_by_use": float(shares @ cosines),
        "relative_squared_error_by_use": _ratio(shares @ errors, shares @ squares),
        "token_coverage": float(shares @ kept.double()),
        "bytes": compressed.size().total,
    }
    rare, common = bands[0], bands[-1]
    return Finding(
        name="frequency_bands",
        title="How close are common rows and rare rows to the original table?",
        numbers=numbers,
        caption=(
            f"At {numbers['bytes']:,} bytes the commonest rows (used {common['counts']}) have "
            f"cosine {common['mean_cosine']:.4f} to the original, the rarest "
            f"({rare['counts']}) {rare['mean_cosine']:.4f}; weighted by use it is "
            f"{numbers['mean_cosine_by_use']:.4f}."
        ),
        figures=_figures(bands),
    )


def _figures(bands: list[dict[str, Any]]) -> list[Bars]:
    shown = {
        "Cosine to the original": [("cosine", "mean_cosine")],
        "Squared error, relative to the rows' squares": [("error", "relative_squared_error")],
        "Rows, their use, and those kept one by one": [
            ("share of all rows", "row_share"),
            ("share of tokens", "token_share"),
            ("kept, of the band", "kept_share"),
        ],
    }
    rows = sum(band["rows"] for band in bands)
    filled = [{**band, "row_share": band["rows"] / rows} for band in bands]
    names, places = [band["counts"] for band in bands], tuple(range(len(bands)))
    return [
        Bars(
            title=f"{title}, by how often a token occurs",
            x_title="times seen in the text",
            y_title=series[0][0] if len(series) == 1 else "share",
            names=names,
            series=[Series(label, places, [band[key] for band in filled]) for label, key in series],
            limit=1.0 if series[0][0] == "cosine" else None,
        )
        for title, series in shown.items()
    ]


def kept_rows(compressed: CompressedEmbedding) -> Tensor:
    """Which rows ``(rows,)`` are stored one by one; where all are stored alike, none is kept."""
    kept = torch.zeros(compressed.rows, dtype=torch.bool)
    parts = tiers(compressed)
    for tier in parts[:-1]:
        if isinstance(tier.table, (FullTable, IntegerTable)):
            kept[tier.ids] = True
    return kept


@torch.no_grad()
def _compared(original: Tensor, compressed: CompressedEmbedding) -> tuple[Tensor, Tensor, Tensor]:
    """Cosine, squared error and squared length of each row, as float64."""
    device = next(iter(compressed.state_dict().values())).device
    parts = []
    for ids in torch.arange(len(original)).split(BLOCK_ROWS):
        x, y = original[ids].double(), compressed(ids.to(device)).cpu().double()
        squares, lengths = x.square().sum(dim=1), y.square().sum(dim=1)
        cosine = (x * y).sum(dim=1) / (squares * lengths).sqrt().clamp_min(1e-300)
        cosine = torch.where((squares == 0) & (lengths == 0), 1.0, cosine)
        parts.append(torch.stack([cosine, (x - y).square().sum(dim=1), squares]))
    cosines, errors, squares = torch.cat(parts, dim=1)
    return cosines, errors, squares


def _band(
    name: str,
    mine: Tensor,
    weights: Tensor,
    kept: Tensor,
    cosines: Tensor,
    errors: Tensor,
    squares: Tensor,
) -> dict[str, Any]:
    return {
        "counts": name,
        "rows": int(mine.sum()),
        "token_share": float(weights[mine].sum() / weights.sum()),
        "kept_share": float(kept[mine].double().mean()),
        "mean_cosine": float(cosines[mine].mean()),
        "relative_squared_error": _ratio(errors[mine].sum(), squares[mine].sum()),
    }


def _name(place: int) -> str:
    if place < 2:
        return ("unseen", "below 1")[place]
    low = 10 ** (place - 2)
    return f"{low}-{10 * low - 1}"


def _ratio(error: Tensor, square: Tensor) -> float | None:
    """None where all rows are zero and nothing is relative to them."""
    return float(error / square) if float(square) else None
