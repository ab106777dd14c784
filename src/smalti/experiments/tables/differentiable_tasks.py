"""Classifiers and BERT of "Differentiable Product Quantization" (ICML 2020)."""

from __future__ import annotations

from smalti.experiments.claims import Claim
from smalti.experiments.comparisons import Less
from smalti.experiments.table import Arm, Metric, Table, declare
from smalti.experiments.tables.differentiable import PAPER
from smalti.experiments.tables.small_texts import (
    ACCURACY,
    COSTS,
    FULL,
    PERPLEXITY,
    TINY,
    TRAINING,
    coded,
    keeps,
)

NEWS = {"AG News": "agnews", "TREC": "trec"}

declare(
    Table(
        name="dpq-classification",
        paper=PAPER,
        where="text classification; TREC is not in the paper",
        title="Classifiers by the mean of word vectors, 10,001 texts of AG News to learn from",
        kind="texts",
        base={
            "task": "text_classifier",
            "dim": 300,
            "hidden": 100,
            "dropout": 0.5,
            **TRAINING,
            "training.batch_size": 64,
            "training.learning_rate": 1e-3,
            "training.steps": 1200,
            "training.evaluate_every": 400,
        },
        scales={"tiny": {**TINY, "limit": 200}, "laptop": {}, "paper": {"training.steps": 5000}},
        seeds={"laptop": 3},
        minutes={"tiny": 0.05, "laptop": 1.5, "paper": 15},
        arms=tuple(
            Arm(f"{text}, {name}", {"data": data, **table})
            for text, data in NEWS.items()
            for name, table in (
                ("full", FULL),
                ("softmax 50 x 32", coded("softmax", 50, 32)),
                ("centroid 50 x 32", coded("centroid", 50, 32)),
                ("softmax 50 x 16", coded("softmax", 50, 16)),
                ("softmax 100 x 32", coded("softmax", 100, 32)),
            )
        ),
        metrics=(ACCURACY, *COSTS),
        claims=(
            Claim(
                "Codes cost no accuracy in text classification.",
                tuple(
                    Less("accuracy", f"{text}, full", f"{text}, {arm}", factor=1.01)
                    for text in NEWS
                    for arm in ("softmax 50 x 32", "centroid 50 x 32")
                ),
                why="A hundredth of the accuracy counts as none. The published scores are the "
                "best over all iterations on the test set; these are those of the last one.",
            ),
        ),
    )
)

FILLED_IN = Metric("accuracy", "words filled in right, %", "higher")

declare(
    Table(
        name="dpq-bert",
        paper=PAPER,
        where="BERT pre-training and appendix B",
        title="A small BERT on the words of WikiText-2",
        kind="texts",
        base={
            "task": "masked_model",
            "data": "wikitext2",
            "dim": 128,
            "hidden": 128,
            "depth": 2,
            "heads": 4,
            "dropout": 0.1,
            "window": 64,
            **TRAINING,
            "training.batch_size": 16,
            "training.learning_rate": 1e-3,
            "training.steps": 2000,
            "training.evaluate_every": 1000,
        },
        scales={
            "tiny": {**TINY, "limit": 10, "window": 16},
            "laptop": {},
            "paper": {
                "dim": 768,
                "hidden": 768,
                "depth": 12,
                "heads": 12,
                "window": 512,
                "training.batch_size": 1024,
                "training.learning_rate": 1e-4,
                "training.steps": 1_000_000,
            },
        },
        seeds={"laptop": 3},
        minutes={"tiny": 0.03, "laptop": 3.5, "paper": 1_000_000},
        arms=(
            Arm("full", FULL),
            Arm("softmax 32 x 32", coded("softmax", 32, 32)),
            Arm("centroid 32 x 32", coded("centroid", 32, 32)),
            Arm("softmax 16 x 32", coded("softmax", 16, 32)),
            # Too many codebooks for a narrow table.
            Arm("softmax 128 x 32", coded("softmax", 128, 32), only=("paper",)),
        ),
        metrics=(PERPLEXITY, FILLED_IN, *COSTS),
        claims=(
            Claim(
                "BERT can be pre-trained with codes in the place of its table at no cost.",
                (
                    *keeps("full", "softmax 32 x 32"),
                    Less("accuracy", "full", "softmax 32 x 32", factor=1.02),
                ),
                why="A perplexity or an accuracy up to 2 % worse counts as none. Measured on words "
                "that are filled in, with two layers instead of twelve; what becomes of tasks "
                "that are learned afterwards is not. The paper's table has 30,522 rows of width "
                "768 and 128 x 32 codes.",
            ),
            Claim(
                "So it can with the paper's 128 x 32 codes.",
                keeps("full", "softmax 128 x 32"),
                only=("paper",),
            ),
        ),
    )
)
