"""What do codes mean: which words have the same ones?

Reference:
    Chen, Li, Sun, "Differentiable Product Quantization for End-to-End Embedding Compression",
    ICML 2020, arXiv:1908.09756, appendix C.4, table 12.

Differs from the paper:
    The number of shared codes stands beside what two rows taken by chance share.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from smalti.analysis.code_group import CodeGroup
from smalti.analysis.figures import HeatMap, Listing
from smalti.analysis.finding import Finding
from smalti.errors import DataError, require

# Codes of a word that are written out.
MOST_CODES = 24
# Pairs of rows that the level of chance is counted on.
PAIRS = 20_000


def shared_codes(
    group: CodeGroup, words: Sequence[str], rows: Sequence[int], seed: int = 0
) -> Finding:
    """The codes of chosen words, and how many of them each two have in common.

    Args:
        group: Codes ``(n, num_codebooks)`` of all rows.
        words: The chosen words.
        rows: Their rows in the group.
        seed: Chooses the pairs of rows that stand for chance.
    """
    codes = group.codes
    require(
        len(words) == len(rows) > 1 and codes.dim() == 2,
        f"expected at least two words, each with its row, got {len(words)} and {len(rows)}",
        DataError,
    )
    chosen = codes[list(rows)].long()
    shared = (chosen[:, None] == chosen[None]).sum(dim=2)
    chance = shared_by_chance(codes, seed)
    above = shared[tuple(torch.triu_indices(len(rows), len(rows), offset=1))].double()
    best = shared.masked_fill(torch.eye(len(rows), dtype=torch.bool), -1)
    first, second = divmod(int(best.argmax()), len(rows))
    many = codes.shape[1]
    numbers = {
        "words": list(words),
        "num_codebooks": many,
        "codes": dict(zip(words, chosen.tolist(), strict=True)),
        "shared": shared.tolist(),
        "mean_shared": float(above.mean()),
        "mean_shared_by_chance": chance,
        "most_shared": [words[first], words[second], int(best.max())],
    }
    columns = ["word", *(str(book) for book in range(min(many, MOST_CODES)))]
    return Finding(
        name="shared_codes",
        title="Which words share codes?",
        caption=(
            f"Two of these {len(words)} words share {numbers['mean_shared']:.1f} of {many} codes "
            f"on the average, two rows taken by chance {chance:.1f}; most are shared by "
            f"{words[first]} and {words[second]} ({int(best.max())})."
        ),
        numbers=numbers,
        figures=[
            HeatMap(
                title="Codes that two words have in common",
                row_title="word",
                column_title="word",
                value_title="shared codes",
                rows=list(words),
                columns=list(words),
                values=[
                    [None if i == j else count for j, count in enumerate(line)]
                    for i, line in enumerate(shared.tolist())
                ],
            ),
            Listing(
                f"Codes of these words{f', the first {MOST_CODES}' if many > MOST_CODES else ''}",
                columns,
                [
                    [word, *row[:MOST_CODES]]
                    for word, row in zip(words, chosen.tolist(), strict=True)
                ],
            ),
        ],
    )


def shared_by_chance(codes: Tensor, seed: int = 0) -> float:
    """How many codes two different rows have in common, on average.

    Args:
        codes: ``(n, num_codebooks)``.
        seed: Chooses pairs of rows.
    """
    generator = torch.Generator().manual_seed(seed)
    one, other = torch.randint(len(codes), (2, PAIRS), generator=generator)
    apart = one != other
    return float((codes[one] == codes[other]).sum(dim=1)[apart].double().mean())
