"""What the tables of image models share: columns, a small network, and how it is trained."""

from __future__ import annotations

from typing import Any

from smalti.experiments.table import Metric, Scale

MSE = Metric("mse", "MSE (0 to 1)")
DISTORTION = Metric("distortion", "distortion, bits/dim")
RATE = Metric("rate", "rate, bits/dim")
NOMINAL_RATE = Metric("rate_uniform", "nominal rate, bits/dim")
SUM = Metric("bits_per_dim", "sum, bits/dim")
IN_USE = Metric("used_share", "codes in use", "higher")
ENTROPY = Metric("entropy_bits", "entropy at a place, bits", "higher")
SHARED = Metric("shared_bits", "information shared by two codebooks, bits")
GAP = Metric("relative_gradient_gap", "relative gradient gap")

MIXTURE = {"likelihood": "logistic_mixture", "components": 3}
# What the published setting has more.
FULL_MIXTURE = {"model.likelihood": {"likelihood": "logistic_mixture", "components": 10}}

SMALL: dict[str, Any] = {
    "data.source": "cifar10",
    "data.valid_share": 0.05,
    "data.augmentation": "flip",
    "model.autoencoder": "convolutional",
    "model.likelihood": "square_error",
    "model.width": 64,
    "model.hidden": 32,
    "model.depth": 2,
    "model.halvings": 2,
    "training.steps": 1500,
    "training.batch_size": 32,
    "training.learning_rate": 2e-3,
    "training.schedule": {"kind": "cosine", "warm_up": 100, "lowest": 0.05},
    "training.clip_norm": 20.0,
    "training.evaluate_every": 1500,
    "training.checkpoint_every": 500,
}

PRIOR: dict[str, Any] = {
    "prior.model": {
        "prior": "autoregressive",
        "dim": 64,
        "depth": 2,
        "heads": 4,
        "dropout": 0.1,
    },
    "prior.training": {
        "steps": 600,
        "batch_size": 16,
        "learning_rate": 1e-3,
        "schedule": {"kind": "cosine", "warm_up": 100, "lowest": 0.05},
        "clip_norm": 1.0,
        "evaluate_every": 600,
        "checkpoint_every": 300,
    },
}

# Seconds instead of minutes: digits that come with scikit-learn, a few steps.
TINY: dict[str, Any] = {
    "data.source": "digits",
    "data.augmentation": "none",
    "model.width": 8,
    "model.hidden": 4,
    "model.depth": 1,
    "model.halvings": 1,
    "training.steps": 4,
    "training.evaluate_every": 4,
    "training.checkpoint_every": 4,
    "training.schedule": {"kind": "constant", "warm_up": 1},
    "limit": 64,
}
TINY_PRIOR: dict[str, Any] = {
    **TINY,
    "prior.model": {"prior": "autoregressive", "dim": 8, "depth": 1, "heads": 2},
    "prior.training": {"steps": 2, "batch_size": 8, "learning_rate": 1e-3},
}

# The published setting of the networks that these tables use.
PAPER: dict[str, Any] = {
    "model.width": 256,
    "model.hidden": 256,
    "model.depth": 4,
    # 400 epochs.
    "training.steps": 156_250,
    "training.batch_size": 128,
    "training.learning_rate": 2e-4,
    "training.schedule": {"kind": "constant", "warm_up": 500},
}

# Half of the bits make a step twice as fast on a processor that has them.
HALF: dict[str, Any] = {"training.precision": "bf16"}
SCALES: dict[Scale, dict[str, Any]] = {"tiny": TINY, "laptop": HALF, "paper": PAPER}
PRIOR_SCALES: dict[Scale, dict[str, Any]] = {
    "tiny": TINY_PRIOR,
    "laptop": {},
    "paper": {
        **PAPER,
        "prior.model": {"prior": "autoregressive", "dim": 512, "depth": 6, "heads": 8},
        "prior.training.steps": 30_000,
        "prior.training.batch_size": 64,
    },
}


def mixed(scales: dict[Scale, dict[str, Any]]) -> dict[Scale, dict[str, Any]]:
    """Scales of a table whose pixels have a mixture of logistics."""
    return {**scales, "paper": {**scales["paper"], **FULL_MIXTURE}}
