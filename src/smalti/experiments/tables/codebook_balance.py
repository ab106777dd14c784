"""Tables of "Balance of Number of Embedding and their Dimensions in Vector Quantization" (2024)."""

from __future__ import annotations

from typing import Any

from smalti.experiments.claims import Claim, Less
from smalti.experiments.table import Arm, Metric, Scale, Table, declare
from smalti.experiments.tables.small_images import (
    GAP,
    IN_USE,
    MSE,
    NOMINAL_RATE,
    SMALL,
    TINY,
)

PAPER = "codebook size against width"
CAPACITY = 65_536
WIDTHS = (128, 64, 32, 16, 8, 4, 2, 1)
PSNR = Metric("psnr", "PSNR, dB", "higher")
UNIT = (
    "sums of the squared errors of the batches, images in [-0.5, 0.5]; the published loop reads "
    "the first batch again and again"
)
# Table 1: by data set, from (512, 128) to (65536, 1).
REPORTED = {
    "mnist": (0.285, 0.294, 0.291, 0.265, 0.240, 0.210, 0.199, 0.377),
    "fashion_mnist": (0.577, 0.590, 0.602, 0.589, 0.503, 0.489, 0.578, 0.877),
    "cifar10": (0.606, 0.663, 0.618, 0.618, 0.553, 0.503, 0.808, 1.353),
    "tiny_imagenet": (2.679, 2.654, 2.640, 2.650, 2.605, 2.528, 3.364, 4.631),
}
BASE: dict[str, Any] = {**SMALL, "training.steps": 1000}
PUBLISHED: dict[str, Any] = {
    "model.width": 128,
    "training.steps": 20_000,
    "training.batch_size": 64,
    "training.learning_rate": 1e-4,
    "training.schedule": {"kind": "constant"},
}
SCALES: dict[Scale, dict[str, Any]] = {"tiny": TINY, "laptop": {}, "paper": PUBLISHED}


def _pair(capacity: int, width: int) -> str:
    return f"{capacity // width:,} x {width}"


def _fixed(capacity: int, width: int) -> dict[str, Any]:
    return {
        "model.quantizer": {"quantizer": "vector", "codebook_size": capacity // width},
        "model.dim": width,
    }


def _adaptive(capacity: int, **more: Any) -> dict[str, Any]:
    pool = [[capacity // width, width] for width in WIDTHS]
    return {"model.quantizer": {"quantizer": "adaptive", "pool": pool, **more}, "model.dim": 64}


for source, reported in REPORTED.items():
    declare(
        Table(
            name=f"balance-pairs-{source.replace('_', '-')}",
            paper=PAPER,
            where="Table 1",
            title=f"All pairs of size and width at a capacity of 65,536 on {source}",
            kind="images",
            base={**BASE, "data.source": source, "data.augmentation": "none"},
            scales=SCALES,
            seeds={"laptop": 3 if source == "cifar10" else 1},
            minutes={"tiny": 0.05, "laptop": 2.5, "paper": 300},
            arms=tuple(
                Arm(_pair(CAPACITY, width), _fixed(CAPACITY, width), {"mse": number})
                for width, number in zip(WIDTHS, reported, strict=True)
            ),
            metrics=(MSE, PSNR, NOMINAL_RATE, GAP, IN_USE),
            unit=UNIT,
            claims=(
                Claim(
                    f"At one capacity a pair between the extremes is best ({source}).",
                    (
                        Less("mse", _pair(CAPACITY, 8), _pair(CAPACITY, 1)),
                        Less("mse", _pair(CAPACITY, 8), _pair(CAPACITY, 128)),
                    ),
                    why="More codewords are also more bits: the pairs do not have one rate, and "
                    "the paper does not say so.",
                ),
                Claim(
                    f"The gradient gap grows once the width is tiny ({source}).",
                    (Less("relative_gradient_gap", _pair(CAPACITY, 8), _pair(CAPACITY, 1)),),
                    why="Measured at one set of weights, all but the rounding kept.",
                ),
            ),
        )
    )

declare(
    Table(
        name="balance-adaptive",
        paper=PAPER,
        where="Table 2",
        title="The adaptive pool beside fixed codebooks and fair controls on CIFAR-10",
        kind="images",
        base={**BASE, "data.augmentation": "none"},
        scales=SCALES,
        seeds={"laptop": 3},
        minutes={"tiny": 0.1, "laptop": 6, "paper": 900},
        arms=(
            Arm("adaptive", _adaptive(CAPACITY), {"mse": 0.394}),
            Arm("adaptive over slabs", _adaptive(CAPACITY, selection="slab")),
            Arm("best fixed, 16,384 x 4", _fixed(CAPACITY, 4), {"mse": 0.503}),
            Arm("fixed, 8,192 x 8", _fixed(CAPACITY, 8)),
            # As many codewords as all of the pool together.
            Arm(
                "union size, 130,560 x 8",
                {
                    "model.quantizer": {"quantizer": "vector", "codebook_size": 130_560},
                    "model.dim": 8,
                },
            ),
        ),
        metrics=(MSE, PSNR, NOMINAL_RATE, GAP, IN_USE),
        unit=UNIT,
        claims=(
            Claim(
                "Choosing a codebook for each place beats the best fixed codebook.",
                (Less("mse", "adaptive", "best fixed, 16,384 x 4"),),
                why="The pool stores eight times the numbers and has up to 19 bits a place where "
                "the fixed codebook has 14.",
            ),
            Claim(
                "It also beats a fixed codebook with as many codewords as the pool.",
                (Less("mse", "adaptive", "union size, 130,560 x 8"),),
                why="The paper has no such control.",
            ),
            Claim(
                "The published code, which selects over slabs of channels, does better still.",
                (Less("mse", "adaptive over slabs", "adaptive"),),
                why="A slab crosses all places, so that each place gets codes of all codebooks: "
                "about 100 bits.",
            ),
        ),
    )
)

declare(
    Table(
        name="balance-ablation",
        paper=PAPER,
        where="Table 3",
        title="Capacity, learning, weights of the losses and network of the adaptive pool",
        kind="images",
        base={**BASE, "data.augmentation": "none", **_adaptive(CAPACITY)},
        scales=SCALES,
        minutes={"tiny": 0.1, "laptop": 6, "paper": 900},
        arms=(
            Arm("base", {}, {"mse": 0.394}),
            Arm("capacity 32,768", _adaptive(32_768), {"mse": 0.412}),
            Arm("capacity 4,096", _adaptive(4_096), {"mse": 0.458}),
            Arm("alpha 1", _adaptive(CAPACITY, alpha=1.0), {"mse": 0.466}),
            Arm("alpha 5", _adaptive(CAPACITY, alpha=5.0), {"mse": 0.630}),
            Arm("beta 0.2", _adaptive(CAPACITY, beta=0.2), {"mse": 0.349}),
            Arm("beta 5", _adaptive(CAPACITY, beta=5.0), {"mse": 0.491}),
            Arm("CNN", {"model.body": "plain"}, {"mse": 0.330}),
            Arm("CNN+Inception", {"model.body": "inception"}, {"mse": 0.459}),
        ),
        metrics=(MSE, PSNR, NOMINAL_RATE, IN_USE),
        unit=UNIT,
        claims=(
            Claim(
                "More capacity is better.",
                (
                    Less("mse", "base", "capacity 32,768"),
                    Less("mse", "base", "capacity 4,096"),
                ),
                why="Capacity is rate: fewer codewords are fewer bits.",
            ),
            Claim(
                "A commitment of 0.25 is better than larger ones.",
                (Less("mse", "base", "alpha 1"), Less("mse", "base", "alpha 5")),
            ),
            Claim(
                "Less weight on the quantizers' loss is better.",
                (Less("mse", "beta 0.2", "base"), Less("mse", "base", "beta 5")),
            ),
            Claim(
                "The plain network is better than residual or inception blocks.",
                (Less("mse", "CNN", "base"), Less("mse", "CNN", "CNN+Inception")),
            ),
        ),
    )
)

declare(
    Table(
        name="balance-faces-and-eyes",
        paper=PAPER,
        where="Tables 1 to 3, CelebA and diabetic retinopathy",
        title="The same on two sets of photographs",
        kind="images",
        arms=(),
        metrics=(MSE,),
        untestable="neither set may be passed on; with the pictures in a folder, "
        "`smalti tune codebook --data FOLDER` measures the same",
        claims=(
            Claim(
                "The order of the pairs is the same on CelebA and on retinopathy pictures.",
                untestable="neither set may be passed on",
            ),
        ),
    )
)
