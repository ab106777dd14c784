"""Word tables as codes, learned with a translator (differentiable product quantization)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smalti.experiments.claims import Claim
from smalti.experiments.comparisons import Less, Near
from smalti.experiments.table import Arm, Metric, Table, declare
from smalti.experiments.tables.captions import (
    BEAM_BLEU,
    BLEU,
    CAPTIONS,
    CHRF,
    TINY_CAPTIONS,
    WMT_CAPTIONS,
    WMT_TEXTS,
)
from smalti.experiments.tables.small_texts import LEAST_RATIO

PAPER = "differentiable product quantization"
BYTES = Metric("table_bytes", "bytes of the tables that are looked up in")
RATIO = Metric("table_ratio", "times smaller than float32", "higher")
LOSS = Metric("valid_token_nats", "nats a token, held out")

# All arms learn from nothing, which takes longer than starting from a teacher: a smaller network
# makes up for it.
STEPS = 1500
NETWORK: dict[str, Any] = {
    "model.translator": "autoregressive",
    "model.dim": 128,
    "model.depth": 2,
    "model.decoder_depth": 2,
    "model.dropout": 0.2,
    "training.steps": STEPS,
    "training.batch_size": 2048,
    "training.learning_rate": 2e-3,
    "training.evaluate_every": STEPS // 3,
    "decoding.length_penalties": [1.0],
}

# Transformer base, 2,048 sentences a batch of about 30 tokens each; with Adam, not SM3.
PUBLISHED: dict[str, Any] = {
    **WMT_CAPTIONS,
    **{f"data.{name}": text.replace("wmt14", "wmt19") for name, text in WMT_TEXTS.items()},
    "model.ratio": 4,
    "model.dropout": 0.1,
    "training.batch_size": 65_536,
    "training.schedule": {"kind": "inverse_root", "warm_up": 10_000},
    "unseen.data": "wmt19:newstest2019",
}
# The pairs of its figures.
PUBLISHED_PAIRS = ((32, 32), (128, 8), (128, 32), (128, 128))
CHOICES = ("centroid", "softmax")

# A table for each side, and an output layer of its own, which is full in all arms.
UNTIED: dict[str, Any] = {"model.tied": False}
BOTH = ("source", "target")
ONE = "one table"


def _codes(
    choice: str, num_codebooks: int, codebook_size: int, tied: bool = False
) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "compressor": "differentiable",
        "choice": choice,
        "num_codebooks": num_codebooks,
        "codebook_size": codebook_size,
    }
    if choice == "centroid" or tied:
        # Normalised scores would choose centroids that are not the nearest. And tokens of a batch
        # have other means than all rows, which an output layer scores: a row would have other
        # codes where it is read than where it is scored.
        spec["distance_norm"] = "none"
    return spec


def _by_side(spec: dict[str, Any], sides: Sequence[str]) -> dict[str, Any]:
    return {**UNTIED, "embedding": dict.fromkeys(sides, spec)}


def _smaller(arm: str) -> Less:
    return Less("table_bytes", arm, "full", factor=1 / LEAST_RATIO, condition=True)


def _matches(arm: str, full: str) -> Less:
    """Within a fiftieth of the score."""
    return Less("bleu", full, arm, factor=1.02)


declare(
    Table(
        name="translation-codes",
        paper=PAPER,
        where="translation: the abstract, and the settings of appendix B",
        title="Word tables, full and as codes learned with the translation",
        kind="translation",
        base={**CAPTIONS, **NETWORK},
        scales={
            # Softmax needs parts that are two wide.
            "tiny": {**TINY_CAPTIONS, "model.dim": 64},
            "laptop": {},
            "paper": PUBLISHED,
        },
        minutes={"tiny": 0.05, "laptop": 10, "paper": 6000},
        arms=(
            Arm("full", UNTIED),
            *(
                Arm(f"{choice}, 32 x 16", _by_side(_codes(choice, 32, 16), BOTH))
                for choice in CHOICES
            ),
            *(
                # Of the released model the encoder's side alone is coded.
                Arm(
                    f"{choice}, {d} x {k}",
                    _by_side(_codes(choice, d, k), BOTH[:1]),
                    only=("paper",),
                )
                for choice in CHOICES
                for d, k in PUBLISHED_PAIRS
            ),
            Arm(ONE),
            *(
                Arm(f"{ONE}, {choice}, 32 x 16", {"embedding": _codes(choice, 32, 16, tied=True)})
                for choice in CHOICES
            ),
        ),
        metrics=(BLEU, BEAM_BLEU, CHRF, LOSS, BYTES, RATIO),
        claims=(
            Claim(
                "Codes learned with the task match full tables and are more than 14 times smaller.",
                tuple(
                    comparison
                    for choice in CHOICES
                    for comparison in (
                        _matches(f"{choice}, 32 x 16", "full"),
                        _smaller(f"{choice}, 32 x 16"),
                    )
                ),
                why="The size is that of packed codes and codebooks as saved, of the tables of "
                "both sides. Every arm has a full output layer of its own.",
            ),
            Claim(
                "So they do on the encoder's side alone, in the paper's sizes.",
                tuple(
                    _matches(f"{choice}, {d} x {k}", "full")
                    for choice in CHOICES
                    for d, k in PUBLISHED_PAIRS
                ),
                only=("paper",),
            ),
            Claim(
                "Centroids and softmax do equally well.",
                (Near("bleu", "centroid, 32 x 16", "softmax, 32 x 16", 1.03),),
                why="Up to 3 % more or less counts as equal. The softmax writes sentences that "
                "are a tenth too long.",
            ),
            Claim(
                "Not in the released code: one table for both sides and the output can be codes "
                "as well.",
                tuple(_matches(f"{ONE}, {choice}, 32 x 16", ONE) for choice in CHOICES),
                why="Rows that share codes share a part of their scores, whatever the hidden "
                "vector is.",
            ),
        ),
    )
)
