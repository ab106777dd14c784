"""Language models of "Differentiable Product Quantization" (ICML 2020)."""

from __future__ import annotations

from typing import Any

from smalti.experiments.claims import Claim
from smalti.experiments.comparisons import Less
from smalti.experiments.figures import Against
from smalti.experiments.table import Arm, Table, declare
from smalti.experiments.tables.small_texts import (
    COSTS,
    FULL,
    LANGUAGE_MODEL,
    PAPER_LANGUAGE_MODEL,
    PERPLEXITY,
    TINY_LANGUAGE_MODEL,
    coded,
    keeps,
)

PAPER = "differentiable product quantization"

# Codebooks and codewords: some that the published code tries of an LSTM, the first of them as
# large as 14 times smaller allows, and two ways to spend 150 bits a word.
GRID = ((50, 128), (50, 32), (50, 8), (25, 64), (25, 32), (10, 32))

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
        minutes={"tiny": 0.03, "laptop": 2.5, "paper": 2000},
        arms=(
            Arm("full", FULL),
            *(Arm(f"softmax {d} x {k}", coded("softmax", d, k)) for d, k in GRID),
            *(Arm(f"centroid {d} x {k}", coded("centroid", d, k)) for d, k in GRID),
        ),
        metrics=(PERPLEXITY, *COSTS),
        drawn=(Against("perplexity", "ratio", log=True),),
        claims=(
            Claim(
                "Codes that are learned with the task make the table more than 14 times smaller "
                "at no cost.",
                keeps("full", "softmax 50 x 128", "centroid 50 x 128"),
                why="A perplexity up to 2 % higher counts as none. Only the input table is coded. "
                "The output layer has weights of its own: a softmax by classes of frequency here, "
                "2.9 MB, and a full one in the published code.",
            ),
            Claim(
                "More codebooks and more codewords give a better model and a larger table.",
                (
                    Less("perplexity", "softmax 50 x 32", "softmax 10 x 32"),
                    Less("perplexity", "centroid 50 x 32", "centroid 10 x 32"),
                    Less("perplexity", "softmax 50 x 32", "softmax 50 x 8"),
                    Less("perplexity", "centroid 50 x 32", "centroid 50 x 8"),
                    Less("ratio", "softmax 50 x 32", "softmax 10 x 32", condition=True),
                    Less("ratio", "softmax 50 x 32", "softmax 50 x 8", condition=True),
                ),
                why="A codebook adds log2 K bits to each row; a codeword adds its floats once, and "
                "with a small vocabulary those are no small part of the table.",
            ),
            Claim(
                "For the same bits, more codebooks are worth more than more codewords.",
                (
                    Less("perplexity", "softmax 50 x 8", "softmax 25 x 64"),
                    Less("perplexity", "centroid 50 x 8", "centroid 25 x 64"),
                ),
                why="150 bits a word both, and fewer codewords to save.",
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
        base={**LANGUAGE_MODEL, "data": "wikitext2", "training.steps": 2400},
        scales={
            "tiny": {**TINY_LANGUAGE_MODEL, "limit": 10},
            "laptop": {},
            "paper": PAPER_LANGUAGE_MODEL,
        },
        minutes={"tiny": 0.03, "laptop": 6, "paper": 5000},
        arms=(
            Arm("full", FULL),
            Arm("softmax 50 x 32", coded("softmax", 50, 32)),
            Arm("centroid 50 x 32", coded("centroid", 50, 32)),
        ),
        metrics=(PERPLEXITY, *COSTS),
        claims=(
            Claim(
                "With three times as many words, codes cost nothing.",
                keeps("full", "softmax 50 x 32", "centroid 50 x 32"),
                why="A perplexity up to 2 % higher counts as none; seeds of the smaller text "
                "differ by up to 1 %.",
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
    "training.steps": 2000,
    "training.evaluate_every": 1000,
}
TEXTS = {"PTB": "ptb", "WikiText-2": "wikitext2"}

declare(
    Table(
        name="dpq-transformer",
        paper=PAPER,
        where="not in the paper, whose transformers translate and fill in words",
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
        minutes={"tiny": 0.03, "laptop": 4, "paper": 3000},
        arms=tuple(
            Arm(f"{text}, {name}", {"data": data, **table})
            for text, data in TEXTS.items()
            for name, table in (
                ("full", FULL),
                ("softmax 32 x 32", coded("softmax", 32, 32)),
                ("centroid 32 x 32", coded("centroid", 32, 32)),
                ("softmax 16 x 32", coded("softmax", 16, 32)),
            )
        ),
        metrics=(PERPLEXITY, *COSTS),
        claims=(
            Claim(
                "Not in the paper: codes cost nothing in a transformer that predicts the next "
                "word.",
                tuple(
                    one
                    for text in TEXTS
                    for one in keeps(
                        f"{text}, full", f"{text}, softmax 32 x 32", f"{text}, centroid 32 x 32"
                    )
                ),
                why="A perplexity up to 2 % higher counts as none.",
            ),
        ),
    )
)
