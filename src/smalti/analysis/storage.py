"""Where do the bytes go: which rows are stored in which way, and what that takes?"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from smalti.analysis.figures import Bars, Series, bars_of
from smalti.analysis.finding import Finding
from smalti.embeddings.base import CompressedEmbedding
from smalti.embeddings.tiers import tiers

FLOAT32 = 4


def storage(table: CompressedEmbedding, counts: Tensor | None = None) -> Finding:
    """The bytes of a table by part and by tier of rows.

    Args:
        table: A compressed table.
        counts: ``(rows,)`` how often each row is used.
    """
    size, dense = table.size(), FLOAT32 * table.rows * table.dim
    uses = None if counts is None else counts.double()
    parts: list[dict[str, Any]] = [
        {
            "stored_as": tier.words,
            "rows": len(tier.ids),
            "bytes": tier.bytes,
            "bytes_a_row": tier.bytes / max(1, len(tier.ids)),
            "token_share": _share(uses, tier.ids),
        }
        for tier in tiers(table)
    ]
    numbers = {
        "rows": table.rows,
        "dim": table.dim,
        "bytes": size.total,
        "float32_bytes": dense,
        "percent": 100 * size.total / dense,
        "times_smaller": dense / size.total,
        "by_part": size.as_dict(),
        "tiers": parts,
    }
    told = ", ".join(f"{part['rows']:,} rows as {part['stored_as']}" for part in parts)
    by_part = {name: value for name, value in size.as_dict().items() if name != "total"}
    names, places = [part["stored_as"] for part in parts], tuple(range(len(parts)))
    figures = [
        bars_of("Bytes by what they hold", "part of the table", "bytes", dict(by_part)),
        Bars(
            title="Rows and bytes by how rows are stored",
            x_title="stored as",
            y_title="share",
            names=names,
            series=[
                Series("rows", places, [part["rows"] / table.rows for part in parts]),
                Series("bytes", places, [part["bytes"] / size.total for part in parts]),
                *(
                    [Series("use", places, [part["token_share"] for part in parts])]
                    if uses is not None
                    else []
                ),
            ],
        ),
    ]
    return Finding(
        name="storage",
        title="Where do the bytes go?",
        caption=(
            f"{size.total:,} bytes instead of {dense:,} as float32, {dense / size.total:.1f} times "
            f"smaller: {told}."
        ),
        numbers=numbers,
        figures=figures,
    )


def _share(uses: Tensor | None, ids: Tensor) -> float | None:
    if uses is None or not bool(uses.sum() > 0):
        return None
    return float(uses[ids].sum() / uses.sum())


def commonest(counts: Tensor | None, rows: int, most: int) -> Tensor:
    """The rows that are used most, in that order; without counts the first ones.

    Tokenizers give small numbers to common tokens.
    """
    if counts is None:
        return torch.arange(min(rows, most))
    return counts.double().argsort(descending=True, stable=True)[:most]
