"""Figure 3 of "Theory and Experiments on Vector Quantized Autoencoders" (2018): who collapses.

Quantizers are fitted to features that do not change, so that many starts, decays and numbers of
samples can be tried with many seeds.
"""

from __future__ import annotations

from typing import Any

from smalti.experiments.claims import Claim
from smalti.experiments.comparisons import Less
from smalti.experiments.figures import ByArm
from smalti.experiments.table import Arm, Table, declare
from smalti.experiments.tables.expectation_maximisation import PAPER
from smalti.experiments.tables.fixed_features import (
    FEATURES_IN_USE,
    RELATIVE_ERROR,
    RESNET_20,
    untrained,
)

# How codewords and the statistics of their moving averages start.
STARTS: dict[str, tuple[str, str]] = {
    "data": ("data", "lazy"),
    "random": ("random", "ones"),
    # Codewords stay where they are until something is assigned to them.
    "patient": ("random", "lazy"),
    "published": ("random", "tensor2tensor"),
}
DECAYS = (0.99, 0.999)
SAMPLES = (None, 5, 10, 25)


def _method(samples: int | None) -> str:
    return "hard" if samples is None else f"{samples} samples"


def _arm(samples: int | None, start: str, decay: float, **more: Any) -> Arm:
    codewords, statistics = STARTS[start]
    quantizer: dict[str, Any] = {
        "quantizer": "vector" if samples is None else "soft_em",
        "codebook_size": 256,
        "learning": {"kind": "ema", "decay": decay, "statistics": statistics},
        "start": codewords,
        # What is asked is who collapses, so nothing is revived.
        "dead": "keep",
    }
    if samples is not None:
        quantizer |= {"samples": samples, "temperature": "scaled", **more}
    name = ", ".join((_method(samples), f"{start} start", str(decay), *map(_told, more.items())))
    return Arm(name, {"quantizer": quantizer})


def _told(setting: tuple[str, str]) -> str:
    """A further setting in words, such as ``learned prior``."""
    return f"{setting[1]} {setting[0]}"


def _more_in_use(start: str, *samples: int) -> tuple[Less, ...]:
    """That soft EM uses more codes than hard EM from a start, at both decays."""
    return tuple(
        Less("used_share", f"hard, {start} start, {decay}", f"{m} samples, {start} start, {decay}")
        for m in samples
        for decay in DECAYS
    )


declare(
    Table(
        name="em-stability",
        paper=PAPER,
        where="Figure 3",
        title="Codes in use and error of hard and soft EM, by start, decay and samples",
        kind="features",
        base=RESNET_20,
        scales={"tiny": untrained(8)},
        seeds={"laptop": 5, "paper": 10},
        minutes={"tiny": 0.02, "laptop": 0.2, "paper": 0.2},
        arms=(
            *(
                _arm(samples, start, decay)
                for start in STARTS
                for decay in DECAYS
                for samples in SAMPLES
            ),
            *(_arm(10, start, 0.99, prior="learned") for start in STARTS),
        ),
        metrics=(FEATURES_IN_USE, RELATIVE_ERROR),
        drawn=(ByArm("used_share"),),
        unit="a figure of teacher-forced BLEU; no numbers",
        claims=(
            Claim(
                "Soft EM keeps its codes where hard EM collapses (the published start).",
                _more_in_use("published", 5, 10),
                why="The published code starts with counts of zero and sums that are not, which "
                "throws unused codewords far away, at a decay of 0.999 nearly all of them.",
            ),
            Claim(
                "Soft EM keeps more codes than hard EM from random codewords.",
                _more_in_use("random", 5, 10),
                why="Statistics that start with one vector a codeword: the method itself, "
                "without the fault of the start.",
            ),
            Claim(
                "Soft EM keeps more codes than hard EM where unused codewords wait in place.",
                _more_in_use("patient", 5, 10),
                why="Random codewords that move only once something is assigned to them.",
            ),
            Claim(
                "Soft EM keeps more codes than hard EM from codewords that start on data.",
                _more_in_use("data", 5, 10),
                why="A start that the paper does not try: nothing collapses, so that there is "
                "nothing to gain.",
            ),
            Claim(
                "Not in the paper: soft EM has the lower error.",
                tuple(
                    Less(
                        "relative_error",
                        f"10 samples, {start} start, 0.99",
                        f"hard, {start} start, 0.99",
                    )
                    for start in STARTS
                ),
                why="Judged with one code a vector, as it would be sent; the mean of several "
                "samples that training decodes is no code of so many bits. At the paper's decay "
                "of 0.999 these steps replace a third of the statistics, so that random codewords "
                "would be measured.",
            ),
            Claim(
                "A cluster prior that learns makes codes collapse (nothing revived).",
                tuple(
                    Less(
                        "used_share",
                        f"10 samples, {start} start, 0.99, learned prior",
                        f"10 samples, {start} start, 0.99",
                        factor=0.5,
                    )
                    for start in STARTS
                ),
                why="Collapse is taken as half of the codes in use or less. The paper gives no "
                "numbers.",
            ),
            Claim(
                "Many samples are worse than ten.",
                tuple(
                    Less(
                        "relative_error",
                        f"10 samples, {start} start, 0.99",
                        f"25 samples, {start} start, 0.99",
                    )
                    for start in ("data", "random")
                ),
                why="The paper sees it in translation (Table 4).",
            ),
        ),
    )
)
