"""Did the table lose directions: its rank against what codes can have?

Reference:
    Chen, Li, Sun, "Differentiable Product Quantization for End-to-End Embedding Compression",
    ICML 2020, arXiv:1908.09756, proposition 1 and appendix A.

Differs from the paper:
    Its condition (K D >= d gives full rank) can't hold: the one-hot codes of each of D groups
    add up to the same vector of ones. What holds for codes and codewords in general position is
    rank = min(rows, d, D (K - 1) + 1). With w numbers a part and u codewords in use it is at
    most 1 + the sum over parts of min(w, u - 1).
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from smalti.analysis.figures import Lines, Series
from smalti.analysis.finding import Finding
from smalti.codes import Usage
from smalti.embeddings.base import BLOCK_ROWS, CompressedEmbedding
from smalti.embeddings.coded import CodedTable
from smalti.embeddings.tiers import Tier, tiers
from smalti.errors import DataError, require

# Directions with less than this share of the strongest one's length count as none.
NOTHING = 1e-6


def rank(table: CompressedEmbedding, original: Tensor | None = None) -> Finding:
    """The rank of a table's coded rows, and how their strength is spread over directions.

    Args:
        table: A table with codes. Where it keeps some rows otherwise, the others are looked at.
        original: ``(rows, dim)`` what it was made from.
    """
    coded = [tier for tier in tiers(table) if tier.code_sizes]
    ids = torch.cat([tier.ids for tier in coded]) if coded else torch.arange(table.rows)
    values = singular_values(table(block) for block in ids.split(BLOCK_ROWS))
    found = int((values > NOTHING * values.max()).sum())
    most = min(len(ids), table.dim)
    bound = min(most, sum(map(_of_codes_in_use, coded)) or most)
    free = sum(1 + sum(size - 1 for size in tier.code_sizes) for tier in coded)
    formula = min(most, free or most)
    series = [_spectrum("coded rows", values)]
    numbers = {
        "rows": len(ids),
        "dim": table.dim,
        "rank": found,
        "formula": formula,
        "formula_of_codes_in_use": bound,
        "effective_rank": _effective(values),
    }
    if original is not None:
        before = singular_values(original[block] for block in ids.split(BLOCK_ROWS))
        numbers["original_rank"] = int((before > NOTHING * before.max()).sum())
        numbers["original_effective_rank"] = _effective(before)
        series.insert(0, _spectrum("original", before))
    against = (
        f", that of the original {numbers['original_effective_rank']:.0f}"
        if original is not None
        else ""
    )
    return Finding(
        name="rank",
        title="Did the table lose directions?",
        caption=(
            f"The {len(ids):,} coded rows have rank {found}, where codes in use allow {bound} and "
            f"the corrected formula min(rows, d, D (K - 1) + 1) says {formula}; their effective "
            f"rank is {numbers['effective_rank']:.0f}{against}."
        ),
        numbers=numbers,
        figures=[
            Lines(
                "Strength of the table's directions",
                "direction, the strongest first",
                "singular value over the largest",
                series,
                log_y=True,
            )
        ],
    )


@torch.no_grad()
def singular_values(blocks: Iterable[Tensor]) -> Tensor:
    """The singular values ``(dim,)`` of blocks of rows put together, the largest first.

    They are the roots of the eigenvalues of the rows' products, summed in float64: a table is
    never needed whole in float64.
    """
    gram: Tensor | None = None
    for block in blocks:
        wide = block.detach().cpu().double()
        products = wide.T @ wide
        gram = products if gram is None else gram.add_(products)
    require(gram is not None, "expected at least one row, got none", DataError)
    values: Tensor = torch.linalg.eigvalsh(gram).flip(0).clamp(min=0).sqrt()
    return values


def _of_codes_in_use(tier: Tier) -> int:
    """The largest rank of rows that are made of the codewords in use."""
    usage = Usage(tier.code_sizes)
    usage.update(tier.codes())
    free = torch.tensor([usage[book].in_use - 1 for book in range(len(usage))])
    if not isinstance(tier.table, CodedTable):
        return 1 + int(free.sum())
    # The codewords of a part's stages are added up: together they span no more than its width.
    by_part = free.view(tier.table.parts, tier.table.stages).sum(dim=1)
    return 1 + int(by_part.clamp(max=tier.table.dim // tier.table.parts).sum())


def _effective(values: Tensor) -> float:
    """The exponential of the entropy of the strengths' shares (Roy and Vetterli, 2007)."""
    shares = values / values.sum().clamp(min=torch.finfo(values.dtype).tiny)
    return float(torch.special.entr(shares).sum().exp())


def _spectrum(name: str, values: Tensor) -> Series:
    strongest = float(values.max()) or 1.0
    shares = (values / strongest).tolist()
    kept = [share if share > NOTHING else None for share in shares]
    return Series(name, list(range(1, len(kept) + 1)), kept)
