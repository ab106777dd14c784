"""What the tables of depthwise quantization share: its name, widths, and quantizers."""

from __future__ import annotations

from typing import Any

PAPER = "depthwise quantization"
# Width of one codebook's part; the paper's is 64 beside networks four times as wide.
WIDTH = 8
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
