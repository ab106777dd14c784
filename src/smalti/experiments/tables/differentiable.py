"""Tables of "Differentiable Product Quantization for End-to-End Embedding Compression" (2020)."""

from __future__ import annotations

from typing import Any

from smalti.experiments.claims import Claim, Less
from smalti.experiments.table import Arm, Metric, Table, declare
from smalti.experiments.tables.small_texts import (
    ACCURACY,
    FORMULA_RATIO,
    FULL,
    IN_USE,
    KILOBYTES,
    LANGUAGE_MODEL,
    PAPER_LANGUAGE_MODEL,
    PERPLEXITY,
    RATIO,
    TINY,
    TINY_LANGUAGE_MODEL,
    TRAINING,
    coded,
)

PAPER = "differentiable product quantization"
COSTS = (RATIO, FORMULA_RATIO, KILOBYTES, IN_USE)
# The least ratio of which the abstract says that it costs nothing.
LEAST_RATIO = 14
# A loss of so much is called none.
NEGLIGIBLE = 1.02


def _keeps(full: str, *arms: str) -> tuple[Less, ...]:
    """That arms are much smaller than a full table, and no worse in perplexity."""
    return tuple(
        comparison
        for arm in arms
        for comparison in (
            Less("perplexity", arm, full, factor=NEGLIGIBLE),
            Less("ratio", full, arm, factor=1 / LEAST_RATIO),
        )
    )


# Codebooks and codewords: what the published code tries of an LSTM.
GRID = ((50, 32), (50, 8), (25, 32), (25, 128), (10, 32))

declare(
    Table(
        name="dpq-language-model",
        paper=PAPER,
        where="language models, Penn Treebank",
        title="An LSTM with a full input table and with codes that are learned with it",
        kind="texts",
        base=LANGUAGE_MODEL,
        scales={"tiny": TINY_LANGUAGE_MODEL, "laptop": {}, "paper": PAPER_LANGUAGE_MODEL},
        seeds={"laptop": 3},
        minutes={"tiny": 0.03, "laptop": 5, "paper": 2000},
        arms=(
            Arm("full", FULL),
            *(Arm(f"softmax {d} x {k}", coded("softmax", d, k)) for d, k in GRID),
            *(Arm(f"centroid {d} x {k}", coded("centroid", d, k)) for d, k in GRID),
        ),
        metrics=(PERPLEXITY, *COSTS),
        claims=(
            Claim(
                "Codes that are learned with the task make the table more than 14 times smaller "
                "at no cost.",
                _keeps("full", "softmax 50 x 32", "centroid 50 x 32"),
                why="A perplexity up to 2 % higher counts as none. Only the input table is coded; "
                "the output layer, which is larger, stays full here and in the published code.",
            ),
            Claim(
                "More codebooks and more codewords give a better model and a larger table.",
                (
                    Less("perplexity", "softmax 50 x 32", "softmax 10 x 32"),
                    Less("perplexity", "centroid 50 x 32", "centroid 10 x 32"),
                    Less("perplexity", "softmax 25 x 128", "softmax 25 x 32"),
                    Less("perplexity", "centroid 25 x 128", "centroid 25 x 32"),
                    Less("ratio", "softmax 50 x 32", "softmax 10 x 32"),
                    Less("ratio", "softmax 25 x 128", "softmax 25 x 32"),
                ),
                why="A codebook adds log2 K bits to each row; a codeword adds its floats once, and "
                "with a small vocabulary those are no small part of the table.",
            ),
            Claim(
                "For the same bits, more codebooks are worth more than more codewords.",
                (
                    Less("perplexity", "softmax 50 x 8", "softmax 25 x 32"),
                    Less("perplexity", "centroid 50 x 8", "centroid 25 x 32"),
                ),
                why="150 bits a word against 125, but fewer codewords: as saved the tables are 41 "
                "and 44 times smaller.",
            ),
        ),
    )
)

declare(
    Table(
        name="dpq-wikitext",
        paper=PAPER,
        where="language models, WikiText-2",
        title="An LSTM on a text with 33,000 words",
        kind="texts",
        base={**LANGUAGE_MODEL, "data": "wikitext2"},
        scales={
            "tiny": {**TINY_LANGUAGE_MODEL, "limit": 10},
            "laptop": {},
            "paper": PAPER_LANGUAGE_MODEL,
        },
        seeds={"laptop": 3},
        minutes={"tiny": 0.03, "laptop": 6, "paper": 5000},
        arms=(
            Arm("full", FULL),
            Arm("softmax 50 x 32", coded("softmax", 50, 32)),
            Arm("centroid 50 x 32", coded("centroid", 50, 32)),
        ),
        metrics=(PERPLEXITY, *COSTS),
        claims=(
            Claim(
                "With three times as many words, codes still cost nothing.",
                _keeps("full", "softmax 50 x 32", "centroid 50 x 32"),
                why="A perplexity up to 2 % higher counts as none.",
            ),
        ),
    )
)

TRANSFORMER: dict[str, Any] = {
    **LANGUAGE_MODEL,
    "network": "transformer",
    "dim": 128,
    "hidden": 128,
    "depth": 2,
    "heads": 4,
    "dropout": 0.2,
    "window": 64,
    "training.batch_size": 16,
    "training.learning_rate": 1e-3,
}
TEXTS = {"PTB": "ptb", "WikiText-2": "wikitext2"}

declare(
    Table(
        name="dpq-transformer",
        paper=PAPER,
        where="not in the paper, whose transformers translate",
        title="A small transformer as a language model",
        kind="texts",
        base=TRANSFORMER,
        scales={
            "tiny": {**TINY_LANGUAGE_MODEL, "limit": 10},
            "laptop": {},
            "paper": {
                "dim": 512,
                "hidden": 512,
                "depth": 6,
                "heads": 8,
                "training.steps": 100_000,
            },
        },
        seeds={"laptop": 3},
        minutes={"tiny": 0.03, "laptop": 5, "paper": 3000},
        arms=tuple(
            Arm(f"{text}, {name}", {"data": data, **table})
            for text, data in TEXTS.items()
            for name, table in (
                ("full", FULL),
                ("softmax 32 x 32", coded("softmax", 32, 32)),
                ("centroid 32 x 32", coded("centroid", 32, 32)),
            )
        ),
        metrics=(PERPLEXITY, *COSTS),
        claims=(
            Claim(
                "Codes cost nothing in a transformer, too.",
                tuple(
                    one
                    for text in TEXTS
                    for one in _keeps(
                        f"{text}, full", f"{text}, softmax 32 x 32", f"{text}, centroid 32 x 32"
                    )
                ),
                why="A perplexity up to 2 % higher counts as none.",
            ),
        ),
    )
)

NEWS = {"AG News": "agnews", "TREC": "trec"}

declare(
    Table(
        name="dpq-classification",
        paper=PAPER,
        where="text classification",
        title="Classifiers by the mean of word vectors",
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
        minutes={"tiny": 0.05, "laptop": 3, "paper": 15},
        arms=tuple(
            Arm(f"{text}, {name}", {"data": data, **table})
            for text, data in NEWS.items()
            for name, table in (
                ("full", FULL),
                ("softmax 50 x 32", coded("softmax", 50, 32)),
                ("centroid 50 x 32", coded("centroid", 50, 32)),
                ("softmax 50 x 16", coded("softmax", 50, 16)),
            )
        ),
        metrics=(ACCURACY, *COSTS),
        unit="the published code gives the best accuracy of all iterations on the test set",
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
        minutes={"tiny": 0.03, "laptop": 5, "paper": 1_000_000},
        arms=(
            Arm("full", FULL),
            Arm("softmax 32 x 32", coded("softmax", 32, 32)),
            Arm("centroid 32 x 32", coded("centroid", 32, 32)),
        ),
        metrics=(PERPLEXITY, FILLED_IN, *COSTS),
        unit="the paper's table has 30,522 rows of width 768 and 128 x 32 codes",
        claims=(
            Claim(
                "BERT can be pre-trained with codes in the place of its table at no cost.",
                (
                    *_keeps("full", "softmax 32 x 32"),
                    Less("accuracy", "full", "softmax 32 x 32", factor=1.02),
                ),
                why="Of words that are filled in, with two layers instead of twelve; what becomes "
                "of tasks that are learned afterwards is not measured.",
            ),
        ),
    )
)
