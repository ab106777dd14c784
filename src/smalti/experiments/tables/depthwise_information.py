"""Section 5.2 of the paper on depthwise quantization: what codes tell, and how fast they learn."""

from __future__ import annotations

import math

from smalti.experiments.claims import Claim
from smalti.experiments.comparisons import Less
from smalti.experiments.figures import OverSteps
from smalti.experiments.table import Arm, Metric, Table, declare
from smalti.experiments.tables.depthwise_quantizers import PAPER, plain, several, wide
from smalti.experiments.tables.small_images import (
    DISTORTION,
    ENTROPY,
    MIXTURE,
    SCALES,
    SHARED,
    SMALL,
    mixed,
)

# Nats of entropy and of what codebooks share, and the distortion.
REPORTED = {"depthwise": (6.03, 1.93, 3.14), "repeated": (5.86, 2.36, 4.36)}

declare(
    Table(
        name="depthwise-codes",
        paper=PAPER,
        where="section 5.2 and Figure 3",
        title="Entropy of the codes and information that codebooks share",
        kind="images",
        base={**SMALL, "model.likelihood": MIXTURE, "prior": None},
        scales=mixed(SCALES),
        seeds={"laptop": 3},
        minutes={"tiny": 0.05, "laptop": 1.3, "paper": 600},
        arms=wide(
            (
                Arm("depthwise 5 x 64", several("depthwise", 5, 64)),
                Arm("repeated 5 x 64", several("repeated", 5, 64)),
                *(
                    Arm(
                        f"{kind} 10 x 512",
                        several(kind, 10, 512),
                        {
                            "entropy_bits": entropy / math.log(2),
                            "shared_bits": shared / math.log(2),
                            "distortion": distortion,
                        },
                        ("paper",),
                    )
                    for kind, (entropy, shared, distortion) in REPORTED.items()
                ),
            )
        ),
        metrics=(ENTROPY, SHARED, DISTORTION),
        unit="of ten codebooks of 512 words, an arm of the published setting: entropies of 6.03 "
        "(depthwise) and 5.86 nats, 1.93 and 2.36 shared, a distortion of 3.14 and 4.36",
        claims=(
            Claim(
                "Depthwise codes have a higher entropy.",
                (Less("entropy_bits", "repeated 5 x 64", "depthwise 5 x 64"),),
                why="The mean over places and codebooks, corrected for the size of the sample. "
                "Codebooks of 64 words, all in use, leave little room above: at most 6 bits.",
            ),
            Claim(
                "Depthwise codebooks share less information.",
                (Less("shared_bits", "depthwise 5 x 64", "repeated 5 x 64"),),
                why="Measured with the shuffled zero level taken off; without that correction "
                "the estimate of large codebooks is mostly bias.",
            ),
            Claim(
                "Depthwise codes lower the cost of pixels.",
                (Less("distortion", "depthwise 5 x 64", "repeated 5 x 64"),),
                why="By 28 % in the paper, with ten codebooks of 512; its rows of five have 13 to "
                "20 %. It calls the cost a likelihood; that of the codes is left out on both "
                "sides.",
            ),
        ),
    )
)

QUARTER = Metric("quarter_likelihood_loss", "held-out loss after a quarter of the steps, nats/dim")
LAST = Metric("last_likelihood_loss", "held-out loss at the end, nats/dim")
WEIGHTS = Metric("parameters", "weights of the network", "neither")
NUMBERS = Metric("codebook_numbers", "numbers of the codebooks", "neither")

declare(
    Table(
        name="depthwise-course",
        paper=PAPER,
        where="appendix, Figure 3, and the parameters of Table 1",
        title="How fast the pixels' cost falls, and what the models store",
        kind="images",
        # A rate that falls to the end would decide by itself when a model is done.
        base={
            **SMALL,
            "model.likelihood": MIXTURE,
            "training.schedule": {"kind": "constant", "warm_up": 100},
            "training.evaluate_every": 125,
        },
        scales={**mixed(SCALES), "tiny": {**SCALES["tiny"], "training.evaluate_every": 1}},
        seeds={"laptop": 3},
        minutes={"tiny": 0.05, "laptop": 1.3, "paper": 600},
        arms=wide(
            (
                Arm("depthwise 5 x 64", several("depthwise", 5, 64)),
                Arm("repeated 5 x 64", several("repeated", 5, 64)),
                Arm("plain VQ 64", plain(64)),
            )
        ),
        metrics=(QUARTER, LAST, WEIGHTS, NUMBERS),
        drawn=(OverSteps("likelihood_loss", "held-out loss, nats/dim"),),
        claims=(
            Claim(
                "After a quarter of the steps depthwise codes are as good as the other arm ever "
                "gets.",
                (
                    Less(
                        "quarter_likelihood_loss",
                        "depthwise 5 x 64",
                        "repeated 5 x 64",
                        other_metric="last_likelihood_loss",
                    ),
                ),
                why="Step 50,000 against step 200,000 in the paper, and 375 against 1,500 here, "
                "with a constant learning rate.",
            ),
        ),
    )
)
