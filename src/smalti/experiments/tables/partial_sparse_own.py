"""smalti's own codes beside "Frequency-aware Partial Sparse Coding", at its bytes and a fifth."""

from __future__ import annotations

from typing import Any

from smalti.experiments.claims import Claim
from smalti.experiments.comparisons import Less
from smalti.experiments.figures import Against
from smalti.experiments.table import Arm, Table, declare
from smalti.experiments.tables.glue_models import (
    AVERAGE,
    AVERAGE_LEARNED,
    AVERAGES,
    CHANCE,
    CHANGED,
    FINE_TUNED,
    FITTING,
    LONG,
    LOSS,
    RECOVERY,
    SCALES,
    SCORES,
    SHARE,
    partial,
    scores,
    sparse,
    sparse_of_best,
)
from smalti.experiments.tables.partial_sparse import PAPER, SPARSE, UNIT

KEEP = 0.5
# Bytes a row, from many to few.
PARTS = (192, 128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4)
# Stages and codewords of each, whose codebooks are as wide as the rows.
STAGES = ((12, 256), (8, 256), (6, 256), (4, 256), (3, 256), (2, 256), (4, 64), (2, 64))
# How many of the seen rows are kept beside codes, and how.
KEPT = ((1.0, "int8"), (KEEP, "float16"), (KEEP, "int8"))
KEPT_OF_A_FIFTH = ((0.25, "int8"), (0.1, "int8"), (0.05, "int8"))
# Of the paper's tables the smallest, with one neighbour: a budget that is none too large.
WHOLE = {"of": sparse(KEEP, 1)}
FIFTH = {"of": sparse(KEEP, 1), "share": 0.2}


def _product(parts: int) -> dict[str, Any]:
    return {"compressor": "product", "num_codebooks": parts, "precision": "int8", "power": 0.5}


def _residual(stages: int, size: int) -> dict[str, Any]:
    settings = {"num_codebooks": stages, "codebook_size": size, "precision": "int8"}
    return {"compressor": "residual", **settings}


def _codes(members: list[dict[str, Any]], fifth: bool) -> dict[str, Any]:
    """The largest codes that fit beside some kept rows; validation says beside how many."""
    families = [
        [partial(keep, member, kept) for member in members]
        for keep, kept in (KEPT_OF_A_FIFTH if fifth else KEPT)
    ]
    within = FIFTH if fifth else WHOLE
    return {"change": {"kind": "coded", "options": families, "within": within}}


def _arms() -> tuple[Arm, ...]:
    arms = [
        Arm("original", {"change": {"kind": "original"}}),
        Arm("sparse 0.5", sparse_of_best(KEEP), scores(*SPARSE[KEEP])),
    ]
    methods = {
        "partial product": [_product(parts) for parts in PARTS],
        "partial residual": [_residual(*stages) for stages in STAGES],
    }
    for fifth, words in ((False, "equal bytes"), (True, "a fifth")):
        searched = {"change": {"kind": "searched", "within": FIFTH if fifth else WHOLE}}
        arms += [
            *(
                # A table of seconds has no codes as small as a fifth.
                Arm(f"{name}, {words}", _codes(members, fifth), only=LONG if fifth else ())
                for name, members in methods.items()
            ),
            Arm(f"compress --size, {words}", searched, only=LONG),
        ]
    return tuple(arms)


def _no_lower(*names: str, budget: str = "equal bytes") -> tuple[Less, ...]:
    """That methods score more than sparse codes."""
    return tuple(
        Less(average, "sparse 0.5", f"{name}, {budget}") for name in names for average in AVERAGES
    )


declare(
    Table(
        name="sparse-own",
        paper=PAPER,
        where="beside Table 1, half of the seen rows kept",
        title="Product and residual codes and what `smalti compress` finds, at the paper's bytes "
        "and at a fifth of them",
        kind="fine_tuned",
        paired=True,
        base=FINE_TUNED,
        scales=SCALES,
        seeds={"laptop": 3, "paper": 3},
        # A search and teaching take more than half an hour, the other arms some minutes.
        minutes={"tiny": 0.05, "laptop": 20, "paper": 120},
        arms=_arms(),
        metrics=(AVERAGE, AVERAGE_LEARNED, LOSS, *SCORES, SHARE, CHANGED, FITTING, RECOVERY),
        unit=UNIT,
        drawn=(Against("average", "share"),),
        claims=(
            Claim(
                "At no more bytes smalti's codes score higher than sparse codes.",
                _no_lower("partial product", "partial residual", "compress --size"),
                why="Kept rows in int8 cost a quarter, which leaves bytes for better codes of the "
                "others; sparse codes put those where their neighbours are. The residual codes "
                "have at most 12 stages, and so fewer bytes than there are.",
            ),
            Claim(
                "At a fifth of the bytes, what smalti finds scores no lower than sparse codes.",
                _no_lower("compress --size", budget="a fifth"),
                why=CHANCE,
            ),
            Claim(
                "Product codes beside some kept rows score no lower at a fifth of the bytes.",
                _no_lower("partial product", budget="a fifth"),
            ),
            Claim(
                "Residual codes beside some kept rows score no lower at a fifth of the bytes.",
                _no_lower("partial residual", budget="a fifth"),
            ),
            Claim(
                "Additive codes are no match for sparse codes, at like bytes as well.",
                (Less("average", "partial residual, equal bytes", "sparse 0.5"),),
                why="Residual codes are additive, too. The paper gives additive codes far fewer "
                "bytes and all rows; these have somewhat fewer, and stand beside kept rows.",
            ),
        ),
    )
)
