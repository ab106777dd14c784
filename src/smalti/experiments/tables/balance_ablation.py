"""Table 3 of the paper on codebook size against width: what the pool's result depends on."""

from __future__ import annotations

from smalti.experiments.claims import Claim
from smalti.experiments.comparisons import Less
from smalti.experiments.table import Arm, Scale, Table, declare
from smalti.experiments.tables.balance_settings import (
    PAPER,
    PLACE_BITS,
    POOL_BASE,
    POOL_SCALES,
    PSNR,
    UNIT,
    WIDER,
    adaptive,
    printed,
)
from smalti.experiments.tables.small_images import IN_USE, MSE

ONLY_PAPER: tuple[Scale, ...] = ("paper",)

declare(
    Table(
        name="balance-ablation",
        paper=PAPER,
        where="Table 3, CIFAR-10",
        title="Capacity, learning, weights of the losses and network of the adaptive pool",
        kind="images",
        base={**POOL_BASE, **adaptive()},
        scales=POOL_SCALES,
        seeds={"laptop": 3},
        minutes={"tiny": 0.1, "laptop": 1.5, "paper": 900},
        arms=(
            Arm("base", {}, printed("cifar10", 0.394), at=WIDER),
            # The paper prints 32786.
            Arm("capacity 32,768", adaptive(32_768), printed("cifar10", 0.412), at=WIDER),
            Arm(
                "capacity 16,384", adaptive(16_384), printed("cifar10", 0.427), ONLY_PAPER, at=WIDER
            ),
            Arm("capacity 8,192", adaptive(8_192), printed("cifar10", 0.427), ONLY_PAPER, at=WIDER),
            Arm("capacity 4,096", adaptive(4_096), printed("cifar10", 0.458), at=WIDER),
            Arm("without EMA", adaptive(learning="gradient"), printed("cifar10", 0.490), at=WIDER),
            Arm("alpha 0.5", adaptive(alpha=0.5), printed("cifar10", 0.428), ONLY_PAPER, at=WIDER),
            Arm(
                "alpha 0.75", adaptive(alpha=0.75), printed("cifar10", 0.440), ONLY_PAPER, at=WIDER
            ),
            Arm("alpha 1", adaptive(alpha=1.0), printed("cifar10", 0.466), at=WIDER),
            Arm("alpha 5", adaptive(alpha=5.0), printed("cifar10", 0.630), at=WIDER),
            Arm("alpha 10", adaptive(alpha=10.0), printed("cifar10", 0.700), ONLY_PAPER, at=WIDER),
            Arm("beta 0.01", adaptive(beta=0.01), printed("cifar10", 0.381), ONLY_PAPER, at=WIDER),
            Arm("beta 0.2", adaptive(beta=0.2), printed("cifar10", 0.349), at=WIDER),
            Arm("beta 5", adaptive(beta=5.0), printed("cifar10", 0.491), at=WIDER),
            Arm("CNN", {"model.body": "plain"}, printed("cifar10", 0.330), at=WIDER),
            Arm("CNN+Inception", {"model.body": "inception"}, printed("cifar10", 0.459), at=WIDER),
        ),
        metrics=(MSE, PSNR, PLACE_BITS, IN_USE),
        unit=UNIT,
        claims=(
            Claim(
                "More capacity is better.",
                (
                    Less("mse", "base", "capacity 32,768"),
                    Less("mse", "capacity 32,768", "capacity 4,096"),
                ),
                why="Capacity is rate as well: fewer codewords are fewer bits. Short training "
                "favours the small pool here. Pools of small capacities leave out codebooks with "
                "no more codewords than width, as the paper does; 16,384 and 8,192 are measured "
                "at the scale of the paper alone.",
            ),
            Claim(
                "Moving averages are better than gradients for the codebooks.",
                (Less("mse", "base", "without EMA"),),
                why="Both start on data here and revive dead codewords. The published line of the "
                "moving average reads the other way round: its gamma of 0.99 multiplies the new "
                "value. Ours keeps 0.99 of the old, as its code does.",
            ),
            Claim(
                "A commitment of 0.25 is better than larger ones.",
                (Less("mse", "base", "alpha 1"), Less("mse", "base", "alpha 5")),
                why="The paper's best, and the smallest that it tries.",
            ),
            Claim(
                "A fifth of the weight on the quantizers' loss is better, five times is worse.",
                (Less("mse", "beta 0.2", "base"), Less("mse", "base", "beta 5")),
                why="Weights as in the paper, whose pixels lie in [-0.5, 0.5].",
            ),
            Claim(
                "The plain network is better than residual or inception blocks.",
                (Less("mse", "CNN", "base"), Less("mse", "CNN", "CNN+Inception")),
                why="The networks do not have the same number of weights.",
            ),
        ),
    )
)
