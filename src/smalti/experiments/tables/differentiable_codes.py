"""What the appendix of "Differentiable Product Quantization" says of codes."""

from __future__ import annotations

from typing import Any

from smalti.experiments.claims import Claim
from smalti.experiments.comparisons import Between, Less, Near
from smalti.experiments.figures import OverSteps
from smalti.experiments.table import Arm, Metric, Table, declare
from smalti.experiments.tables.differentiable import PAPER
from smalti.experiments.tables.small_texts import (
    ENTROPY,
    EVENNESS,
    FORMULA_RANK,
    FULL,
    GINI,
    IN_USE,
    LANGUAGE_MODEL,
    PERPLEXITY,
    RANK,
    RATIO,
    TINY_LANGUAGE_MODEL,
    coded,
)

# Tables of the paper's sizes are 512 wide, in a model of translation that saw 250,000 batches.
PAPER_WIDTH: dict[str, Any] = {"dim": 512, "hidden": 512, "training.steps": 250_000}
SOFTMAX = ("softmax", "softmax, plain scores")
CENTROID = ("centroid", "centroid, normalised scores")
HALF = 0.5

declare(
    Table(
        name="dpq-code-use",
        paper=PAPER,
        where="appendix C.1 and Figure 5",
        title="How evenly 32 x 32 codewords are used, with and without normalised scores",
        kind="texts",
        base={**LANGUAGE_MODEL, "dim": 192},
        scales={
            "tiny": TINY_LANGUAGE_MODEL,
            "laptop": {},
            "paper": {**PAPER_WIDTH, "training.evaluate_every": 600},
        },
        seeds={"laptop": 3},
        minutes={"tiny": 0.03, "laptop": 2.5, "paper": 2000},
        arms=(
            Arm("softmax", coded("softmax", 32, 32)),
            Arm("centroid", coded("centroid", 32, 32)),
            Arm("softmax, plain scores", coded("softmax", 32, 32, norm="none")),
            Arm("centroid, normalised scores", coded("centroid", 32, 32, norm="batch_per_group")),
        ),
        metrics=(EVENNESS, ENTROPY, IN_USE, GINI, RANK, FORMULA_RANK, PERPLEXITY),
        unit="the paper shows a heat map of a model of translation and gives no numbers",
        claims=(
            Claim(
                "Centroids are used more evenly than the codewords of a softmax.",
                tuple(
                    Less("evenness", softmax, centroid)
                    for softmax in SOFTMAX
                    for centroid in CENTROID
                ),
                why="The published code normalises the scores of both before it chooses, which "
                "is a choice of its own; both ways are measured.",
            ),
            Claim(
                "A softmax leaves codewords without use; centroids leave fewer.",
                tuple(
                    Less("used_share", softmax, centroid)
                    for softmax in SOFTMAX
                    for centroid in CENTROID
                ),
                why="Over all words of the vocabulary, rare ones included. The paper says so of a "
                "softmax alone.",
            ),
            Claim(
                "With a softmax only a few codewords of each codebook are used.",
                tuple(Between("used_share", softmax, most=HALF) for softmax in SOFTMAX),
                why="Few is taken as less than half. More and larger codebooks leave more of them "
                "without use: see the table of changes.",
            ),
        ),
    )
)

CHANGED = Metric("changed", "codes changed from look to look, %", "neither")
EARLY = Metric("changed_early", "in the first half, %", "neither")
LATE = Metric("changed_late", "in the second half, %", "neither")
LEFT = Metric("changes_left", "second half over first", "neither")
SIZES = (8, 32, 128)
# Up to so many times as much is about the same.
ABOUT = 1.25

declare(
    Table(
        name="dpq-code-changes",
        paper=PAPER,
        where="appendix C.2 and Figure 6",
        title="How fast the codes of 128 codebooks settle, for several sizes of codebooks",
        kind="texts",
        base={
            **LANGUAGE_MODEL,
            "dim": 256,
            "training.batch_size": 16,
            "training.steps": 800,
            "training.evaluate_every": 80,
        },
        scales={
            "tiny": TINY_LANGUAGE_MODEL,
            "laptop": {},
            "paper": {**PAPER_WIDTH, "training.evaluate_every": 600},
        },
        seeds={"laptop": 3},
        minutes={"tiny": 0.05, "laptop": 1.5, "paper": 4000},
        arms=tuple(
            Arm(f"{choice} 128 x {size}", coded(choice, 128, size))
            for choice in ("softmax", "centroid")
            for size in SIZES
        ),
        metrics=(CHANGED, EARLY, LATE, LEFT, IN_USE, EVENNESS, PERPLEXITY),
        drawn=(OverSteps("codes_changed", "codes changed since the last look, share"),),
        unit="the paper shows curves of a model of translation, looked at every 600 batches, and "
        "gives no numbers",
        claims=(
            Claim(
                "Codes of centroids take longer to settle with more codewords.",
                (
                    Less("changed", "centroid 128 x 8", "centroid 128 x 32"),
                    Less("changed", "centroid 128 x 32", "centroid 128 x 128"),
                    Less("changed_late", "centroid 128 x 8", "centroid 128 x 128"),
                    Less("changes_left", "centroid 128 x 8", "centroid 128 x 32"),
                    Less("changes_left", "centroid 128 x 32", "centroid 128 x 128"),
                ),
                why="A learning rate that falls lowers the changes by itself; it falls alike in "
                "all arms.",
            ),
            Claim(
                "Codes of a softmax settle about as fast whatever the number of codewords.",
                tuple(
                    Near(metric, "softmax 128 x 8", "softmax 128 x 128", ABOUT)
                    for metric in ("changes_left", "changed")
                ),
                why="Up to a quarter more or less counts as about as fast. How much of the "
                "changes is left is one side of it, how many there are the other.",
            ),
            Claim(
                "The number of codewords matters more to how centroids settle than to a softmax.",
                (
                    Less(
                        "changed",
                        "softmax 128 x 128",
                        "centroid 128 x 128",
                        less_from="softmax 128 x 8",
                        more_from="centroid 128 x 8",
                    ),
                    Less(
                        "changes_left",
                        "softmax 128 x 128",
                        "centroid 128 x 128",
                        less_from="softmax 128 x 8",
                        more_from="centroid 128 x 8",
                    ),
                ),
            ),
            Claim(
                "With a softmax only a few codewords of each codebook are used (128 codebooks).",
                (
                    *(Between("used_share", f"softmax 128 x {size}", most=HALF) for size in SIZES),
                    *(
                        Less("used_share", f"softmax 128 x {size}", f"centroid 128 x {size}")
                        for size in SIZES
                    ),
                ),
                why="The paper shows it for 32 x 32. Few is taken as less than half.",
            ),
        ),
    )
)

OVERLAP = Metric("overlap", "share of the 10 neighbours in the full table", "higher")
SHARED = Metric("shared_codes", "codes shared with the nearest word", "neither")
CHANCE = Metric("shared_by_chance", "codes that any two words share", "neither")
COSINE = Metric("cosine", "mean cosine of the 10 nearest", "neither")
FULL_COSINE = Metric("full_cosine", "mean cosine of the 10 nearest, full table", "neither")
CONTROL = "full, another start"

declare(
    Table(
        name="dpq-neighbours",
        paper=PAPER,
        where="appendix C.3 and C.4, Tables 9 to 12",
        title="Neighbours of the commonest words in tables of 128 x 128 codes and in the full one",
        kind="table_neighbours",
        base={
            **LANGUAGE_MODEL,
            "dim": 256,
            "common": 2000,
            "training.batch_size": 16,
            "training.steps": 800,
            "training.evaluate_every": None,
        },
        scales={
            "tiny": {**TINY_LANGUAGE_MODEL, "training.evaluate_every": None, "common": 50},
            "laptop": {},
            "paper": PAPER_WIDTH,
        },
        seeds={"laptop": 3},
        minutes={"tiny": 0.05, "laptop": 2, "paper": 5000},
        arms=(
            Arm(CONTROL, FULL, {"full_cosine": 0.360}),
            Arm(
                "softmax 128 x 128",
                coded("softmax", 128, 128),
                {"overlap": 13 / 27, "cosine": 0.451, "full_cosine": 0.360},
            ),
            Arm(
                "centroid 128 x 128",
                coded("centroid", 128, 128),
                {"overlap": 15 / 27, "cosine": 0.307, "full_cosine": 0.360},
            ),
            # As few as Table 12 prints.
            Arm("softmax 8 x 8", coded("softmax", 8, 8)),
            Arm("centroid 8 x 8", coded("centroid", 8, 8)),
        ),
        metrics=(OVERLAP, COSINE, FULL_COSINE, SHARED, CHANCE, PERPLEXITY, RATIO),
        unit="means over the 27 neighbours of the three words of Tables 9 to 11, in a model of "
        "translation",
        claims=(
            Claim(
                "Words have very similar neighbours in a coded and in the full table.",
                (
                    Less("overlap", CONTROL, "softmax 128 x 128", factor=1.1),
                    Less("overlap", CONTROL, "centroid 128 x 128", factor=1.1),
                ),
                why="As many, to a tenth, as a second training of the full table keeps. The "
                "paper's 7 of 10 count the word itself: of the others it is 6 of 9 for one word "
                "and 3 to 5 of 9 for the other two.",
            ),
            Claim(
                "Related words share more codes than others.",
                tuple(
                    Less("shared_by_chance", arm, arm, other_metric="shared_codes")
                    for arm in (
                        "softmax 128 x 128",
                        "centroid 128 x 128",
                        "softmax 8 x 8",
                        "centroid 8 x 8",
                    )
                ),
                why="Related is who is nearest in the full table. In the paper's Table 12, of 21 "
                "words in three groups, words of a group share 3.4 (softmax) and 4.0 (centroids) "
                "of 8 codes, and others 1.5.",
            ),
            Claim(
                "Neighbours are closer together with a softmax than in the full table.",
                (
                    Less(
                        "full_cosine",
                        "softmax 128 x 128",
                        "softmax 128 x 128",
                        other_metric="cosine",
                    ),
                    Less("cosine", CONTROL, "softmax 128 x 128"),
                ),
                why="A second training of the full table tells how much of it is chance.",
            ),
            Claim(
                "Neighbours are farther apart with centroids than in the full table.",
                (
                    Less(
                        "cosine",
                        "centroid 128 x 128",
                        "centroid 128 x 128",
                        other_metric="full_cosine",
                    ),
                    Less("cosine", "centroid 128 x 128", CONTROL),
                ),
                why="A second training of the full table tells how much of it is chance.",
            ),
        ),
    )
)
