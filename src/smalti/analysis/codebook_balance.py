"""Many narrow codewords or few wide ones: what did each codebook of one capacity cost?

Reference:
    Chen, Reddy, Chen, Liu, "Balance of Number of Embedding and their Dimensions in Vector
    Quantization", NeurIPS 2024, arXiv:2407.04939, tables 1 to 3 and figures 3 to 5.

Differs from the paper:
    No error stands without its rate, and a spread over seeds stands where there are several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from smalti.analysis.figures import Figure, Lines, Listing, Scatter, Series
from smalti.analysis.finding import Finding
from smalti.errors import DataError, require

NEEDED = ("arms", "pairs", "steps", "in_words")
COLUMNS = ("mse_0_to_1", "psnr_db", "rate_bits", "coded_bits", "codes_in_use", "codewords")
GAP = "relative_gradient_gap"


def codebook_balance(study: Mapping[str, Any]) -> Finding:
    """Error against rate of all arms, and the gradient gap and the choice of codebooks over time.

    Args:
        study: What ``smalti tune codebook`` writes.
    """
    missing = [name for name in NEEDED if name not in study]
    require(not missing, f"a study lacks {', '.join(missing)}: it is another file", DataError)
    arms: Sequence[Mapping[str, Any]] = study["arms"]
    require(len(arms) > 0, "expected at least one arm of a study, got none", DataError)
    kinds = dict.fromkeys(arm["kind"] for arm in arms)
    figures: list[Figure] = [
        Scatter(
            title="Error by rate, a point for each codebook",
            x_title="bits a place",
            y_title="squared error, 0 to 1",
            series=[_points(kind, [arm for arm in arms if arm["kind"] == kind]) for kind in kinds],
        ),
        Listing(
            title="All codebooks, means over seeds",
            columns=["codebook", *(name.replace("_", " ") for name in COLUMNS)],
            rows=[[arm["name"], *(arm["mean"].get(name) for name in COLUMNS)] for arm in arms],
        ),
    ]
    gaps = [_gap(arm) for arm in arms if _entries(arm, GAP)]
    if gaps:
        figures.insert(
            1, Lines("Gradient gap, relative to the gradient without codes", "step", "gap", gaps)
        )
    for pool in [arm for arm in arms if arm["kind"] == "adaptive" and _entries(arm, "shares")]:
        names = [f"{size} x {width}" for size, width in study["pairs"]]
        shares = [_share(pool, place, name) for place, name in enumerate(names)]
        figures.insert(2, Lines("Choice of codebooks by the pool", "step", "share", shares))
    words = "; ".join(str(sentence) for sentence in study["in_words"])
    return Finding(
        name="codebook_balance",
        title="Many narrow codewords, or few wide ones?",
        caption=f"{words[:1].upper()}{words[1:]}.",
        numbers={"arms": {arm["name"]: dict(arm["mean"]) for arm in arms}},
        figures=figures,
    )


def _points(kind: str, arms: Sequence[Mapping[str, Any]]) -> Series:
    return Series(
        kind,
        [arm["mean"]["rate_bits"] for arm in arms],
        [arm["mean"]["mse_0_to_1"] for arm in arms],
        [arm["name"] for arm in arms],
    )


def _entries(arm: Mapping[str, Any], figure: str) -> list[Mapping[str, Any]]:
    """What the first seed's journal says of a figure."""
    first: Sequence[Mapping[str, Any]] = next(iter(arm["history"].values()), [])
    return [entry for entry in first if figure in entry]


def _gap(arm: Mapping[str, Any]) -> Series:
    entries = _entries(arm, GAP)
    return Series(
        arm["name"], [entry["step"] for entry in entries], [entry[GAP] for entry in entries]
    )


def _share(pool: Mapping[str, Any], place: int, name: str) -> Series:
    entries = _entries(pool, "shares")
    return Series(
        name,
        [entry["step"] for entry in entries],
        [entry["shares"][place] for entry in entries],
    )
