"""Which latent models collapse: Figure 3 of the paper on EM, with what it leaves unsaid."""

from __future__ import annotations

from typing import Any

from smalti.experiments.claims import Claim, Less
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
from smalti.experiments.tables.translation import WMT_UNIT

# The compressor attends to the source, as in the figure.
SEEN = {"model.compressor_attends": True}
# The figure's codebook is four times that of the paper's other models.
LARGER: dict[Scale, dict[str, Any]] = {
    "tiny": {"model.quantizer.codebook_size": 2048},
    "laptop": {"model.quantizer.codebook_size": 2048},
    "paper": {"model.quantizer.codebook_size": 2**14},
}
# With less than half of the codes a model has collapsed; with four fifths it is less stable.
COLLAPSED, STEADIER = 0.5, 0.8

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
        unit=WMT_UNIT,
        claims=(
            Claim(
                "Hard EM collapses where soft EM is stable.",
                (
                    Less(
                        "used_share",
                        "hard EM, reference start, source seen",
                        "soft EM, 10 samples, reference start, source seen",
                        factor=COLLAPSED,
                    ),
                    Less(
                        "teacher_forced_bleu",
                        "hard EM, reference start, source seen",
                        "soft EM, 10 samples, reference start, source seen",
                    ),
                    Less(
                        "used_share",
                        "hard EM, source seen",
                        "soft EM, 10 samples, source seen",
                        factor=COLLAPSED,
                    ),
                ),
                why="Collapse is taken as less than half of the codes in use. The published code "
                "starts its statistics at zero counts and never revives a codeword; the last "
                "comparison starts on data and revives.",
            ),
            Claim(
                "Training is more stable when the compressor does not see the source.",
                (
                    Less(
                        "used_share",
                        "hard EM, reference start, source seen",
                        "hard EM, reference start",
                        factor=STEADIER,
                    ),
                    Less("used_share", "hard EM, source seen", "hard EM", factor=STEADIER),
                ),
                why="More stable is taken as a quarter more codes in use.",
            ),
            Claim(
                "A compressor that sees the source brings nothing.",
                (Less("bleu", "hard EM, source seen", "hard EM", factor=1.02),),
                why="The paper reports the same score without it.",
            ),
            Claim(
                "More samples are more stable.",
                (
                    Less(
                        "used_share",
                        "soft EM, 5 samples, reference start, source seen",
                        "soft EM, 10 samples, reference start, source seen",
                        factor=STEADIER,
                    ),
                ),
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
                why="A quarter more codes in use would count as a difference. The paper divides "
                "squared distances by 1. Of wide vectors they are tens to hundreds, so that all "
                "samples are the same code.",
            ),
        ),
    )
)
