"""Figures of the paper on codebook size against width: gap, quantization loss, choice over time."""

from __future__ import annotations

from typing import Any

from smalti.experiments.claims import Claim
from smalti.experiments.comparisons import Greatest, Less, Near
from smalti.experiments.figures import OverSteps, PartsOverSteps
from smalti.experiments.table import Arm, Metric, Scale, Table, declare
from smalti.experiments.tables.balance_settings import (
    BASE,
    CAPACITY,
    PAPER,
    POOL_BASE,
    POOL_SCALES,
    SCALES,
    WIDER,
    WIDTHS,
    adaptive,
    fixed,
    pair,
)
from smalti.experiments.tables.small_images import MSE

# The paper's gap is a length; relative to the gradient without rounding it is ours.
FIRST_GAP = Metric("first_gradient_gap", "gradient gap at the first tenth", "neither")
LAST_GAP = Metric("last_gradient_gap", "gradient gap at the end")
FIRST_RELATIVE = Metric("first_relative_gradient_gap", "relative gap, first tenth", "neither")
LAST_RELATIVE = Metric("last_relative_gradient_gap", "relative gap at the end")
CHANGE = Metric("gradient_gap_change", "change of the gap, size of the log of last over first")
LOSS = Metric("last_distortion", "quantization loss of a coordinate")
# Places in the pool, which is ordered from wide to narrow.
MOST_WORDS, BEST_PAIR = WIDTHS.index(1), WIDTHS.index(4)
WATCHED: dict[str, Any] = {"watch": 64, "training.evaluate_every": 50}


def _watched(scales: dict[Scale, dict[str, Any]]) -> dict[Scale, dict[str, Any]]:
    return {
        **scales,
        "tiny": {**scales["tiny"], "watch": 2, "training.evaluate_every": 2},
        "paper": {**scales["paper"], "training.evaluate_every": 2000},
    }


def _chosen_most(stop: str, book: int) -> tuple[Greatest, ...]:
    """That a codebook is chosen more often than each of the others."""
    shares = [f"{stop}_share_{place}" for place in range(len(WIDTHS))]
    return (Greatest(shares.pop(book), "adaptive", tuple(shares)),)


def _choices() -> dict[str, str]:
    """What the shares of all codebooks are called."""
    return {
        f"{stop}_share_{place}": f"{stop} choice of {pair(width)}"
        for stop in ("first", "last")
        for place, width in enumerate(WIDTHS)
    }


declare(
    Table(
        name="balance-course",
        paper=PAPER,
        where="Figures 2 to 4",
        title="Gradient gap, quantization loss and choice of codebooks while CIFAR-10 is learned",
        kind="images",
        base={**POOL_BASE, **WATCHED},
        scales=_watched(POOL_SCALES),
        seeds={"laptop": 3},
        minutes={"tiny": 0.1, "laptop": 1, "paper": 900},
        arms=(
            Arm("adaptive", adaptive(), at=WIDER),
            *(Arm(pair(width), fixed(CAPACITY // width, width)) for width in (128, 4, 1)),
        ),
        metrics=(
            MSE,
            FIRST_GAP,
            LAST_GAP,
            LAST_RELATIVE,
            LOSS,
            Metric(f"first_share_{MOST_WORDS}", f"first choice of {pair(1)}", "neither"),
            Metric(f"last_share_{MOST_WORDS}", f"last choice of {pair(1)}", "neither"),
            Metric(f"last_share_{BEST_PAIR}", f"last choice of {pair(4)}", "neither"),
        ),
        labels=_choices(),
        drawn=(
            OverSteps("gradient_gap", "gradient gap", log=True),
            OverSteps("distortion", "quantization loss of a coordinate", log=True),
            PartsOverSteps(
                "adaptive",
                "choice of a codebook, share",
                {f"share/{place}": pair(width) for place, width in enumerate(WIDTHS)},
            ),
        ),
        claims=(
            Claim(
                "At first the pool chooses the codebook with the most words most often.",
                _chosen_most("first", MOST_WORDS),
                why="The published code passes probabilities where scores belong, which keeps "
                "its choice near uniform; ours passes scores. Which codebooks are chosen differs "
                "from seed to seed.",
            ),
            Claim(
                "In the end the pool chooses the pair most often that is best by itself.",
                _chosen_most("last", BEST_PAIR),
                why="In the paper that is 16,384 x 4; here 4,096 x 16 has the lowest error. Two "
                "or three codebooks share most places, others from seed to seed.",
            ),
            Claim(
                "The narrower the codewords, the lower the quantization loss.",
                (
                    Less("last_distortion", pair(4), pair(128)),
                    Less("last_distortion", pair(1), pair(4)),
                ),
                why="Of a coordinate, in units that each encoder sets for itself.",
            ),
            Claim(
                "The pool's gradient gap is low: no larger than that of the paper's best pair.",
                (Less("last_gradient_gap", "adaptive", pair(4)),),
                why="The gap of the codebooks that it chooses, whose width decides it.",
            ),
            Claim(
                "The pool's quantization loss is close to that of the paper's best pair.",
                (Near("last_distortion", "adaptive", pair(4), 1.25),),
                why="Up to a quarter more or less counts as close. The pool's is the mean over "
                "all of its codebooks, chosen or not.",
            ),
        ),
    )
)

declare(
    Table(
        name="balance-channels",
        paper=PAPER,
        where="appendix, Figures 7 to 9",
        title="The gradient gap with one channel, and with three that are equal, on MNIST",
        kind="images",
        base={**BASE, **WATCHED, "data.source": "mnist", **fixed(CAPACITY // 4, 4)},
        scales=_watched(SCALES),
        seeds={"laptop": 3},
        minutes={"tiny": 0.05, "laptop": 1.2, "paper": 300},
        arms=(Arm("one channel"), Arm("three equal channels", {"data.channels": 3})),
        metrics=(MSE, FIRST_GAP, LAST_GAP, CHANGE, FIRST_RELATIVE, LAST_RELATIVE),
        drawn=(OverSteps("gradient_gap", "gradient gap"),),
        claims=(
            Claim(
                "With one channel the gap falls while the model learns.",
                (
                    Less(
                        "last_gradient_gap",
                        "one channel",
                        "one channel",
                        other_metric="first_gradient_gap",
                    ),
                ),
                why="The gap is a length, as in the paper's equation 5. The gradient itself falls "
                "as well: relative to it the gap does not.",
            ),
            Claim(
                "With three channels it changes less.",
                (Less("gradient_gap_change", "three equal channels", "one channel", factor=0.9),),
                why="The paper compares digits with photographs and calls it the channels. Here "
                "the images are the same; three equal channels begin with a smaller gap and end "
                "with the same.",
            ),
        ),
    )
)
