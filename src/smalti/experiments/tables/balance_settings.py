"""What the tables of codebook size against width share: columns, pairs, pools, training."""

from __future__ import annotations

from typing import Any

from smalti.experiments.table import Metric, Scale
from smalti.experiments.tables.small_images import SMALL, TINY

PAPER = "codebook size against width"
CAPACITY = 65_536
WIDTHS = (128, 64, 32, 16, 8, 4, 2, 1)
PSNR = Metric("psnr", "PSNR, dB", "higher")
PLACE_BITS = Metric("place_bits", "bits a place", "neither")
NUMBERS = Metric("codebook_numbers", "numbers of the codebooks", "neither")
UNIT = (
    "sums of the squared errors of the batches, images in [-0.5, 0.5]; the published loop reads "
    "the first batch again and again"
)
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


def with_full_images(source: str, scales: dict[Scale, dict[str, Any]]) -> dict[Scale, Any]:
    """Scales of which the published one has the images as they are."""
    if source != "tiny_imagenet":
        return scales
    return {
        **scales,
        "tiny": {**scales["tiny"], "data.size": None},
        "paper": {**scales["paper"], "data.size": 64},
    }


def pair(width: int, capacity: int = CAPACITY) -> str:
    """What a pair of a capacity is called."""
    return f"{capacity // width:,} x {width}"


def fixed(size: int, width: int) -> dict[str, Any]:
    """Settings of one codebook, in the place of a pool and all that belongs to it."""
    return {
        "model.quantizer": {"quantizer": "vector", "codebook_size": size},
        "model.dim": width,
    }


def adaptive(capacity: int = CAPACITY, **more: Any) -> dict[str, Any]:
    """Settings of the pool of all pairs of a capacity."""
    pool = [[capacity // width, width] for width in WIDTHS]
    quantizer = {"quantizer": "adaptive", "pool": pool, **more}
    own = {f"model.quantizer.{name}": value for name, value in quantizer.items()}
    return {**own, "model.dim": 64}
