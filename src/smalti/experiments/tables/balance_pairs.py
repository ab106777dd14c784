"""Table 1 of the paper on codebook size against width: all pairs of one capacity.

Chen, Reddy, Chen, Liu, "Balance of Number of Embedding and their Dimensions in Vector
Quantization", NeurIPS 2024.
"""

from __future__ import annotations

from smalti.experiments.claims import Claim
from smalti.experiments.comparisons import Least, Less, Near
from smalti.experiments.figures import ByArm
from smalti.experiments.table import Arm, Metric, Table, declare
from smalti.experiments.tables.balance_settings import (
    BASE,
    BEST,
    CAPACITY,
    PAPER,
    PLACE_BITS,
    PSNR,
    SCALES,
    UNIT,
    WIDTHS,
    fixed,
    images_of,
    pair,
    printed,
    shown,
    with_full_images,
)
from smalti.experiments.tables.small_images import GAP, IN_USE, MSE

LENGTH = Metric("gradient_gap", "gradient gap", "neither")
# Gaps that differ by less count as constant.
ABOUT = 1.25
# By data set, from (512, 128) to (65536, 1).
REPORTED = {
    "mnist": (0.285, 0.294, 0.291, 0.265, 0.240, 0.210, 0.199, 0.377),
    "fashion_mnist": (0.577, 0.590, 0.602, 0.589, 0.503, 0.489, 0.578, 0.877),
    "cifar10": (0.606, 0.663, 0.618, 0.618, 0.553, 0.503, 0.808, 1.353),
    "tiny_imagenet": (2.679, 2.654, 2.640, 2.650, 2.605, 2.528, 3.364, 4.631),
}


for _source, _reported in REPORTED.items():
    _best = pair(BEST[_source][0])
    _pairs = tuple(pair(width) for width in WIDTHS)
    declare(
        Table(
            name=f"balance-pairs-{_source.replace('_', '-')}",
            paper=PAPER,
            where="Table 1",
            title=f"All pairs of size and width at a capacity of 65,536 on {shown(_source)}",
            kind="images",
            base={**BASE, **images_of(_source)},
            scales=with_full_images(_source, SCALES),
            seeds={"laptop": 3},
            minutes={"tiny": 0.05, "laptop": 0.8, "paper": 300},
            arms=tuple(
                Arm(pair(width), fixed(CAPACITY // width, width), printed(_source, number))
                for width, number in zip(WIDTHS, _reported, strict=True)
            ),
            metrics=(MSE, PSNR, PLACE_BITS, LENGTH, GAP, IN_USE),
            drawn=(ByArm("mse"),) if _source == "cifar10" else (),
            unit=UNIT,
            claims=(
                Claim(
                    f"At one capacity a pair between the extremes is best ({_source}).",
                    (Less("mse", _best, pair(1)), Less("mse", _best, pair(128))),
                    why="Judged by the pair that the paper finds best. More codewords are also "
                    "more bits: the pairs do not have one rate, and the paper does not say so.",
                ),
                Claim(
                    f"The best pair is {_best} ({_source}).",
                    (Least("mse", _best, tuple(name for name in _pairs if name != _best)),),
                    why="After 500 steps of 32 images, where the paper has 20,000 of 64.",
                ),
                Claim(
                    f"Up to the best pair the gradient gap remains constant ({_source}).",
                    (
                        Near("gradient_gap", pair(128), pair(16), ABOUT),
                        Near("gradient_gap", pair(128), _best, ABOUT),
                    ),
                    why="Up to a quarter more or less counts as constant.",
                ),
                Claim(
                    f"The gradient gap grows once the width is tiny ({_source}).",
                    (Less("gradient_gap", _best, pair(1)),),
                    why="Measured at one set of weights, all but the rounding kept: 65,536 words "
                    "on a line make rounding nearly exact, so that no gap is left. The published "
                    "code compares gradients before and after a step, and leaves the projections "
                    "out of one of them: what grows there is the part of the projection to one "
                    "number.",
                ),
            ),
        )
    )
