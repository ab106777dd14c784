"""What the tables of depthwise quantization share: its name, widths, and quantizers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from smalti.experiments.table import Arm

PAPER = "depthwise quantization"
# Width of one codebook's part, and the paper's, beside networks four times as wide.
WIDTH, PUBLISHED_WIDTH = 8, 64
NORMALISED = "squared error of pixels normalised by ImageNet's mean and deviation"


def several(kind: str, codebooks: int, size: int, **more: Any) -> dict[str, Any]:
    """Settings of one level with several codebooks, each of its own part of the width."""
    return {
        "model.quantizer": {
            "quantizer": kind,
            "codebook_size": size,
            "num_codebooks": codebooks,
            **more,
        },
        "model.dim": WIDTH * codebooks,
    }


def plain(size: int, **more: Any) -> dict[str, Any]:
    """Settings of one level with one codebook, as wide as five of the others."""
    return {
        "model.quantizer": {"quantizer": "vector", "codebook_size": size},
        "model.dim": 5 * WIDTH,
        **more,
    }


def wide(arms: Iterable[Arm]) -> tuple[Arm, ...]:
    """Arms whose parts have the paper's width in the published setting."""
    times = PUBLISHED_WIDTH // WIDTH
    return tuple(
        replace(arm, at={"paper": {"model.dim": times * arm.settings["model.dim"]}}) for arm in arms
    )
