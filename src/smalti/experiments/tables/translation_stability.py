"""Which latent models collapse: Figure 3 of the paper on EM, with what it leaves unsaid."""

from __future__ import annotations

from typing import Any

from smalti.experiments.claims import Claim
from smalti.experiments.comparisons import Between, Less
from smalti.experiments.table import Arm, Scale, Table, declare
from smalti.experiments.tables.captions import (
    BLEU,
    FORCED,
    IN_USE,
    LATENT,
    SHORTER_MINUTES,
    SHORTER_SCALES,
    SHUFFLED,
    USED,
    hard,
    soft,
)
from smalti.experiments.tables.expectation_maximisation import PAPER, REFERENCE

# The compressor attends to the source, as in the figure.
SEEN = {"model.compressor_attends": True}
# The figure's codebook is larger than that of the paper's other models.
LARGER: dict[Scale, dict[str, Any]] = {
    "tiny": {"model.quantizer.codebook_size": 2048},
    "laptop": {"model.quantizer.codebook_size": 2048},
    "paper": {"model.quantizer.codebook_size": 2**14},
}
# With less than half of the codes a model has collapsed; with four fifths it is less stable.
COLLAPSED, STEADIER = 0.5, 0.8
PUBLISHED_SOFT = "soft EM, 10 samples, reference start, source seen"
# One code in a hundred: without that there is nothing to compare.
ALIVE = (Between("used_share", PUBLISHED_SOFT, least=0.01),)

declare(
    Table(
        name="translation-stability",
        paper=PAPER,
        where="Figure 3",
        title="What keeps a large codebook alive: samples, the start, a compressor that does not "
        "see the source",
        kind="translation",
        base=LATENT,
        scales={scale: {**SHORTER_SCALES[scale], **LARGER[scale]} for scale in SHORTER_SCALES},
        seeds={"laptop": 3},
        minutes={"tiny": 0.05, "laptop": SHORTER_MINUTES, "paper": 6000},
        arms=(
            Arm("hard EM", hard()),
            Arm("hard EM, source seen", {**hard(), **SEEN}),
            Arm("soft EM, 10 samples, source seen", {**soft(10), **SEEN}),
            Arm("hard EM, reference start", hard(**REFERENCE)),
            Arm("hard EM, reference start, source seen", {**hard(**REFERENCE), **SEEN}),
            Arm(
                "soft EM, 5 samples, reference start, source seen",
                {**soft(5, **REFERENCE), **SEEN},
            ),
            Arm(
                "soft EM, 10 samples, reference start, source seen",
                {**soft(10, **REFERENCE), **SEEN},
            ),
            Arm(
                "soft EM, 10 samples, temperature 1, reference start, source seen",
                {**soft(10, **REFERENCE, temperature=1.0), **SEEN},
            ),
        ),
        metrics=(FORCED, BLEU, SHUFFLED, IN_USE, USED),
        unit="a figure of teacher-forced BLEU; no numbers",
        claims=(
            Claim(
                "Hard EM collapses where soft EM is stable.",
                (
                    Between("used_share", PUBLISHED_SOFT, least=COLLAPSED),
                    Between(
                        "used_share",
                        "hard EM, reference start, source seen",
                        most=COLLAPSED,
                        condition=True,
                    ),
                ),
                why="Collapse is taken as less than half of the codes in use. The published code "
                "starts its statistics at zero counts and never revives a codeword.",
            ),
            Claim(
                "Not in the paper: from a start on data, and revived, soft EM keeps more than "
                "twice as many codes as hard EM.",
                (
                    Less(
                        "used_share",
                        "hard EM, source seen",
                        "soft EM, 10 samples, source seen",
                        factor=COLLAPSED,
                    ),
                ),
            ),
            Claim(
                "Training is more stable when the compressor does not see the source.",
                (Less("used_share", "hard EM, source seen", "hard EM", factor=STEADIER),),
                why="More stable is taken as a quarter more codes in use. From the published "
                "start one code is left either way.",
            ),
            Claim(
                "A compressor that sees the source brings nothing.",
                (Less("bleu", "hard EM, source seen", "hard EM", factor=1.02),),
                why="The paper reports the same score without it, for 2^12 codes; here it is the "
                "larger codebook, of which few are alive.",
            ),
            Claim(
                "Not in the paper: more samples are more stable.",
                (
                    Less(
                        "used_share",
                        "soft EM, 5 samples, reference start, source seen",
                        PUBLISHED_SOFT,
                        factor=STEADIER,
                    ),
                ),
                assumes=ALIVE,
                why="More stable is taken as a quarter more codes in use.",
            ),
            Claim(
                "Soft EM as printed differs from hard EM.",
                (
                    Less(
                        "used_share",
                        "hard EM, reference start, source seen",
                        "soft EM, 10 samples, temperature 1, reference start, source seen",
                        factor=STEADIER,
                    ),
                ),
                assumes=ALIVE,
                why="A quarter more codes in use would count as a difference. The paper divides "
                "squared distances by 1. Of wide vectors they are tens to hundreds, so that all "
                "samples are the same code.",
            ),
        ),
    )
)
