"""What "Differentiable Product Quantization" says of the rank and the bytes of coded tables."""

from __future__ import annotations

from smalti.experiments.claims import Claim
from smalti.experiments.comparisons import Near
from smalti.experiments.table import Arm, Metric, Table, declare
from smalti.experiments.tables.differentiable import PAPER
from smalti.experiments.tables.small_texts import (
    FORMULA_RANK,
    FORMULA_RATIO,
    KILOBYTES,
    RANK,
    RATIO,
)

# Lets equal numbers pass: ranks and bytes are exact.
EQUAL = 1.001


def _equal(metric: str, other: str, *arms: str) -> tuple[Near, ...]:
    """That two numbers of each arm are the same."""
    return tuple(Near(metric, arm, arm, EQUAL, other_metric=other) for arm in arms)


# Codebooks, codewords, width. The first have as many codewords in all as a row has numbers.
SHAPES = ((8, 4, 32), (16, 2, 32), (32, 8, 256), (8, 8, 32), (32, 32, 512))
RANKS = {f"{d} x {k}, {width} wide": (d, k, width) for d, k, width in SHAPES}
FEW_ROWS = "32 x 8, 256 wide, 100 rows"
AS_MANY = [name for name, (d, k, width) in RANKS.items() if d * k == width]

declare(
    Table(
        name="dpq-rank",
        paper=PAPER,
        where="Proposition 1 and appendix A",
        title="The rank of rows of random codes and codewords, 5,000 where nothing is said",
        kind="table_rank",
        base={"rows": 5000},
        seeds={"laptop": 3},
        minutes={"tiny": 0.01, "laptop": 0.01, "paper": 0.01},
        arms=(
            *(
                Arm(name, {"num_codebooks": d, "codebook_size": k, "dim": width})
                for name, (d, k, width) in RANKS.items()
            ),
            Arm(FEW_ROWS, {"num_codebooks": 32, "codebook_size": 8, "dim": 256, "rows": 100}),
        ),
        metrics=(RANK, FORMULA_RANK, Metric("full_rank", "full rank", "neither")),
        claims=(
            Claim(
                "For a table of full rank it is enough to have as many codewords in all as a row "
                "has numbers.",
                _equal("rank", "full_rank", *AS_MANY),
                why="The proposition also asks that the one-hot codes have full rank, which they "
                "can't with two groups or more: in each of D groups they add up to the same ones, "
                "so their rank is at most D (K - 1) + 1.",
            ),
            Claim(
                "Corrected: the rank is the least of rows, width and D (K - 1) + 1.",
                _equal("rank", "formula_rank", *RANKS, FEW_ROWS),
                why="For codes and codewords in general position; codewords that are not in use "
                "do not count.",
            ),
        ),
    )
)

# Rows, width, codebooks, codewords, shared by all parts of a row.
TABLES = {
    "BERT, 128 x 32": (30_522, 768, 128, 32, False),
    "translation, 32 x 32": (32_000, 512, 32, 32, False),
    "translation, 32 x 32 shared": (32_000, 512, 32, 32, True),
    "translation, 128 x 128": (32_000, 512, 128, 128, False),
}
ODD = "translation, 32 x 20"

declare(
    Table(
        name="dpq-sizes",
        paper=PAPER,
        where="section 2 (the compression ratio) and appendix B",
        title="Bytes of saved tables beside the formula of the paper",
        kind="table_size",
        # No seed should matter here; three show that none does.
        seeds={"laptop": 3},
        minutes={"tiny": 0.01, "laptop": 0.01, "paper": 0.01},
        arms=tuple(
            Arm(
                name,
                {
                    "rows": rows,
                    "dim": dim,
                    "num_codebooks": d,
                    "codebook_size": k,
                    "shared": shared,
                },
            )
            for name, (rows, dim, d, k, shared) in {
                **TABLES,
                ODD: (32_000, 512, 32, 20, False),
            }.items()
        ),
        metrics=(RATIO, FORMULA_RATIO, KILOBYTES),
        claims=(
            Claim(
                "A coded table has n D log2 K bits of codes and 32 K d bits of codewords.",
                _equal("ratio", "formula_ratio", *TABLES, ODD),
                why="What is saved agrees where the number of codewords is a power of two. Codes "
                "of others take whole bits in a file: 5, not 4.3, with 20 codewords.",
            ),
        ),
    )
)
