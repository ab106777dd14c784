"""What the tables of fitted quantizers share: columns, and the features that are fitted."""

from __future__ import annotations

from typing import Any

from smalti.experiments.table import Metric

RELATIVE_ERROR = Metric("relative_error", "error, share of the variance")
FEATURES_IN_USE = Metric("used_share", "codes in use", "higher")
PLACE_BITS = Metric("place_bits", "nominal bits a place", "neither")

# The last map of a network that was trained on the very images: 64 channels of 8 x 8.
RESNET_20: dict[str, Any] = {
    "features.network": "resnet20",
    "features.source": "cifar10",
    "features.size": 32,
    "features.train": 4000,
    "features.test": 2000,
    "steps": 400,
    "batch_size": 32,
}


def untrained(rows: int) -> dict[str, Any]:
    """A map of so many rows from a shallow network without training, in the place of any other."""
    return {
        "features.network": "untrained",
        "features.source": "digits",
        "features.size": 4 * rows,
        "features.train": 32,
        "features.test": 16,
        "steps": 2,
        "batch_size": 8,
    }
