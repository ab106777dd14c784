"""Is the codebook alive: how often is each codeword of each codebook chosen?

Reference:
    Chen, Li, Sun, "Differentiable Product Quantization for End-to-End Embedding Compression",
    ICML 2020, arXiv:1908.09756, appendix C.1 and figure 5.

Differs from the paper:
    The heat map comes with numbers: entropy (plug-in and corrected), the share of codewords in
    use, evenness (entropy over its largest value, ln K) and Gini's coefficient of the counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from smalti.analysis.code_group import CodeGroup, named
from smalti.analysis.figures import Bars, Figure, HeatMap, Lines, by_number
from smalti.analysis.finding import Finding
from smalti.codes import Usage
from smalti.errors import DataError, require

# Of more numbers torch gives no quantile.
MOST_QUANTILE = 1 << 24
# Codewords of larger codebooks are drawn several to a column.
MOST_COLUMNS = 512


def code_distribution(groups: Sequence[CodeGroup]) -> Finding:
    """How evenly codewords are used, codebook by codebook.

    Args:
        groups: Codes, each group with codebooks of its own.
    """
    require(len(groups) > 0, "expected at least one group of codes, got none", DataError)
    figures: list[Figure] = []
    found: dict[str, list[dict[str, Any]]] = {}
    for group in groups:
        usage = Usage(group.code_sizes)
        usage.update(group.codes)
        found[group.name] = [_of_codebook(usage, book) for book in range(len(usage))]
        figures.append(_heat_map(usage, named(groups, group)))
        figures.append(_evenness(found[group.name], named(groups, group)))
    books = [book for those in found.values() for book in those]
    in_use, every = (sum(book[key] for book in books) for key in ("in_use", "size"))
    numbers = {
        "groups": found,
        "in_use": in_use,
        "codewords": every,
        "used_share": in_use / every,
        "mean_evenness": mean(book["evenness"] for book in books),
        "mean_entropy_bits": mean(book["entropy_bits"] for book in books),
    }
    return Finding(
        name="code_distribution",
        title="Is every codeword in use?",
        caption=(
            f"{in_use:,} of the {every:,} codewords of {len(books)} "
            f"codebook{'' if len(books) == 1 else 's'} are in use ({numbers['used_share']:.1%}); "
            f"the evenness is {numbers['mean_evenness']:.3f} on the average, where 1 means that "
            "all are used alike."
        ),
        numbers=numbers,
        figures=figures,
    )


def gini(counts: Tensor) -> float:
    """Gini's coefficient: 0 where all counts are equal, near 1 where one has everything.

    Example:
        >>> gini(torch.tensor([0, 0, 0, 8]))
        0.75
    """
    ordered = counts.double().sort().values
    total = float(ordered.sum())
    if total == 0:
        return 0.0
    many = len(ordered)
    ranks = torch.arange(1, many + 1, dtype=torch.float64)
    return float((2 * ranks - many - 1) @ ordered) / (many * total)


def _of_codebook(usage: Usage, book: int) -> dict[str, Any]:
    one, size = usage[book], usage.code_sizes[book]
    return {
        "size": size,
        "in_use": one.in_use,
        "used_share": one.in_use / size,
        "entropy_nats": one.entropy_nats,
        "entropy_bits": one.entropy_bits,
        "corrected_entropy_bits": one.corrected_entropy_bits,
        "evenness": one.entropy_nats / math.log(size) if size > 1 else 1.0,
        "gini": gini(one.counts),
    }


def _heat_map(usage: Usage, name: str) -> HeatMap:
    widest = max(usage.code_sizes)
    step = -(-widest // MOST_COLUMNS)
    columns = [f"{k}-{k + step - 1}" if step > 1 else str(k) for k in range(0, widest, step)]
    rows = []
    for counts in usage.counts:
        padded = torch.zeros(step * (-(-len(counts) // step)), dtype=torch.int64)
        padded[: len(counts)] = counts
        own: list[int | None] = padded.view(-1, step).sum(dim=1).tolist()
        rows.append(own + [None] * (len(columns) - len(own)))
    seen = torch.tensor([value for row in rows for value in row if value is not None])
    # Twice the even share and more is the darkest: what is empty must be told from what is not.
    high = float(seen.double().quantile(0.98)) if len(seen) <= MOST_QUANTILE else 0.0
    darkest = float(round(max(1.0, 2 * float(seen.double().mean()), high)))
    return HeatMap(
        title=f"How often each codeword is chosen{name}",
        row_title="codebook",
        column_title="codeword",
        value_title="times chosen",
        rows=[str(book) for book in range(len(usage))],
        columns=columns,
        values=rows,
        shade_to=darkest,
    )


def _evenness(books: list[dict[str, Any]], name: str) -> Bars | Lines:
    shown = {"evenness": "evenness", "share in use": "used_share"}
    return by_number(
        f"Evenness and share in use by codebook{name}",
        "codebook",
        "share",
        {label: [book[key] for book in books] for label, key in shown.items()},
        limit=(1.0, "all alike"),
    )
