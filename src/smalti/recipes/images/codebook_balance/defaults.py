"""What is trained where nobody says: the paper's network at half of its width, for minutes."""

from __future__ import annotations

from typing import Any

from smalti.data.images.known import DIGITS, known_place
from smalti.errors import DataError
from smalti.recipes.images.config import AutoencoderConfig
from smalti.training import as_settings

CIFAR = "cifar10"
# Images of 8 x 8 pixels are halved once, to 4 x 4 places.
NETWORK = {"width": 64, "hidden": 32, "depth": 2, "halvings": 2}
DIGITS_NETWORK = {"width": 32, "hidden": 16, "depth": 1, "halvings": 1}
TRAINING: dict[str, Any] = {
    "steps": 600,
    "batch_size": 32,
    "learning_rate": 1e-3,
    "schedule": {"kind": "cosine", "warm_up": 50, "lowest": 0.05},
    "clip_norm": 2.0,
    "log_every": 25,
    "checkpoint_every": 100,
}


def default_source() -> str:
    """CIFAR-10 where it can be found, else the digits that need no file."""
    try:
        known_place(CIFAR)
    except DataError:
        return DIGITS
    return CIFAR


def default_config(source: str) -> AutoencoderConfig:
    """The settings of a study of these images; configs/codebook-balance-cifar10.yaml says them."""
    network = DIGITS_NETWORK if source == DIGITS else NETWORK
    return as_settings(
        AutoencoderConfig,
        {
            "kind": "autoencoder",
            "data": {"source": source, "valid_share": 0.05},
            "model": {"autoencoder": "convolutional", "likelihood": "square_error", **network},
            "training": TRAINING,
        },
    )
