"""What the tables of tasks on texts share: columns, coded tables, and how models are trained."""

from __future__ import annotations

from typing import Any

from smalti.experiments.comparisons import Between, Comparison, Less
from smalti.experiments.table import Metric

PERPLEXITY = Metric("perplexity", "test perplexity")
ACCURACY = Metric("accuracy", "test accuracy, %", "higher")
RATIO = Metric("ratio", "times smaller, as saved", "higher")
FORMULA_RATIO = Metric("formula_ratio", "times smaller, by the paper's formula", "higher")
KILOBYTES = Metric("table_kb", "input table, kB")
IN_USE = Metric("used_share", "codewords in use", "neither")
EVENNESS = Metric("evenness", "evenness, entropy over ln K", "neither")
ENTROPY = Metric("entropy_bits", "entropy of a code, bits", "neither")
GINI = Metric("gini", "Gini's coefficient of the counts", "neither")
RANK = Metric("rank", "rank", "higher")
FORMULA_RANK = Metric("formula_rank", "min(n, d, D (K - 1) + 1)", "neither")

COSTS = (RATIO, FORMULA_RATIO, KILOBYTES, IN_USE)

# As the library recommends: plain distances for centroids, normalised scores for softmax.
NORMS = {"softmax": "batch_per_group", "centroid": "none"}
FULL: dict[str, Any] = {"embedding": None}


def coded(choice: str, num_codebooks: int, codebook_size: int, norm: str = "") -> dict[str, Any]:
    """An input table that learns its codes with the task.

    Args:
        choice: ``"softmax"`` (DPQ-SX) or ``"centroid"`` (DPQ-VQ).
        num_codebooks: Codes a word.
        codebook_size: Codewords of each.
        norm: How scores are normalised, where it is not as recommended.
    """
    return {
        "embedding": {
            "compressor": "differentiable",
            "choice": choice,
            "num_codebooks": num_codebooks,
            "codebook_size": codebook_size,
            "distance_norm": norm or NORMS[choice],
        }
    }


# The least ratio of which the abstract says that it costs nothing.
LEAST_RATIO = 14
# A loss of so much is called none.
NEGLIGIBLE = 1.02


def keeps(full: str, *arms: str) -> tuple[Comparison, ...]:
    """That arms are much smaller than a full table, and no worse in perplexity."""
    return tuple(
        comparison
        for arm in arms
        for comparison in (
            Less("perplexity", arm, full, factor=NEGLIGIBLE),
            Between("ratio", arm, least=LEAST_RATIO, condition=True),
        )
    )


# The same for all tables: a short rise, and a straight fall to zero.
TRAINING: dict[str, Any] = {
    "training.batch_size": 32,
    "training.learning_rate": 2e-3,
    "training.schedule": {"kind": "linear", "warm_up": 0.02},
    "training.clip_norm": 1.0,
    "training.checkpoint_every": 250,
    "training.log_every": 50,
    "training.tensorboard": False,
}
# Seconds instead of minutes: the first lines, a few steps.
TINY: dict[str, Any] = {
    "limit": 40,
    "hidden": 16,
    "training.steps": 4,
    "training.batch_size": 4,
    "training.evaluate_every": 2,
}

LANGUAGE_MODEL: dict[str, Any] = {
    "task": "language_model",
    "data": "ptb",
    "network": "lstm",
    "dim": 200,
    "hidden": 200,
    "depth": 1,
    "dropout": 0.3,
    "window": 35,
    **TRAINING,
    "training.steps": 1500,
    "training.evaluate_every": 750,
}
TINY_LANGUAGE_MODEL: dict[str, Any] = {**TINY, "window": 8}
# The medium LSTM of Zaremba, Sutskever and Vinyals, with Adam instead of plain descent.
PAPER_LANGUAGE_MODEL: dict[str, Any] = {
    "dim": 650,
    "hidden": 650,
    "depth": 2,
    "dropout": 0.5,
    "training.steps": None,
    "training.epochs": 39,
    "training.batch_size": 20,
    "training.learning_rate": 1e-3,
    "training.checkpoint_every": 1000,
}
