"""What the tables of codebook size against width share: columns, pairs, pools, training."""

from __future__ import annotations

from typing import Any

from smalti.experiments.table import Metric, Scale
from smalti.experiments.tables.small_images import SMALL, TINY

PAPER = "codebook size against width"
CAPACITY = 65_536
WIDTHS = (128, 64, 32, 16, 8, 4, 2, 1)
# A pool's vectors are as wide as its widest codewords in the paper, and half of that here.
WIDER: dict[Scale, dict[str, Any]] = {"paper": {"model.dim": 128}}
PSNR = Metric("psnr", "PSNR, dB", "higher")
PLACE_BITS = Metric("place_bits", "bits a place", "neither")
NUMBERS = Metric("codebook_numbers", "numbers of the codebooks", "neither")
UNIT = (
    "printed as sums over 156 batches (416 of Tiny-ImageNet), here divided by them; the published "
    "loop reads the first batch again and again"
)
# Batches that the published evaluation adds up.
BATCHES = {"tiny_imagenet": 416}
MOST_BATCHES = 156
# Images lie in [-1, 1] here and in [-0.5, 0.5] in the paper, whose errors are a quarter: so the
# losses of quantizers, which do not depend on it, weigh four times as much for the same balance.
WEIGHT = 4.0
# By data set: width of the pair that the paper finds best, its error, and that of the pool.
BEST = {
    "mnist": (2, 0.199, 0.166),
    "fashion_mnist": (4, 0.489, 0.410),
    "cifar10": (4, 0.503, 0.394),
    "tiny_imagenet": (4, 2.528, 2.022),
}
STEPS = 500
BASE: dict[str, Any] = {
    **SMALL,
    "training.steps": STEPS,
    "training.evaluate_every": STEPS,
    "data.augmentation": "none",
}
PUBLISHED: dict[str, Any] = {
    "model.width": 128,
    "training.steps": 20_000,
    "training.batch_size": 64,
    "training.learning_rate": 1e-4,
    "training.schedule": {"kind": "constant"},
}
SCALES: dict[Scale, dict[str, Any]] = {"tiny": TINY, "laptop": {}, "paper": PUBLISHED}
# A pool's temperature falls over all of its training.
ANNEALED = "model.quantizer.anneal_steps"
POOL_BASE: dict[str, Any] = {**BASE, ANNEALED: STEPS}
POOL_SCALES: dict[Scale, dict[str, Any]] = {
    "tiny": {**TINY, ANNEALED: 4},
    "laptop": {},
    "paper": {**PUBLISHED, ANNEALED: 20_000},
}


def images_of(source: str) -> dict[str, Any]:
    """A data set; images of 64 x 64 at half of their side, since a place costs as much in each."""
    return {"data.source": source, **({"data.size": 32} if source == "tiny_imagenet" else {})}


def shown(source: str) -> str:
    """How a data set is called in titles."""
    return f"{source} (32 x 32 on a laptop)" if source == "tiny_imagenet" else source


def with_full_images(source: str, scales: dict[Scale, dict[str, Any]]) -> dict[Scale, Any]:
    """Scales of which the published one has the images as they are."""
    if source != "tiny_imagenet":
        return scales
    return {
        **scales,
        "tiny": {**scales["tiny"], "data.size": None},
        "paper": {**scales["paper"], "data.size": 64, "training.batch_size": 24},
    }


def printed(source: str, number: float) -> dict[str, float]:
    """The mean squared error of what the paper prints."""
    return {"mse": number / BATCHES.get(source, MOST_BATCHES)}


def pair(width: int, capacity: int = CAPACITY) -> str:
    """What a pair of a capacity is called."""
    return f"{capacity // width:,} x {width}"


def fixed(size: int, width: int) -> dict[str, Any]:
    """Settings of one codebook, in the place of a pool and all that belongs to it."""
    return {
        "model.quantizer": {"quantizer": "vector", "codebook_size": size, "beta": 0.25 * WEIGHT},
        "model.dim": width,
    }


def adaptive(capacity: int = CAPACITY, beta: float = 1.0, **more: Any) -> dict[str, Any]:
    """Settings of the pool of all pairs of a capacity that have more codewords than width.

    Args:
        capacity: Numbers of each codebook.
        beta: The weight of the codebooks' losses as the paper counts it.
        more: Further settings of the quantizer.
    """
    pool = [[capacity // width, width] for width in WIDTHS if capacity // width > width]
    quantizer = {"quantizer": "adaptive", "pool": pool, "beta": WEIGHT * beta, **more}
    own = {f"model.quantizer.{name}": value for name, value in quantizer.items()}
    return {**own, "model.dim": 64}
