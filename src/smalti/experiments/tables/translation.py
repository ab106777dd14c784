"""Translation of "Theory and Experiments on Vector Quantized Autoencoders": which bottleneck."""

from __future__ import annotations

from smalti.experiments.claims import Claim
from smalti.experiments.comparisons import Less
from smalti.experiments.figures import Against, ByArm
from smalti.experiments.table import Arm, Table, declare
from smalti.experiments.tables.captions import (
    BEAM_BLEU,
    BLEU,
    CHRF,
    FORCED,
    IN_USE,
    LATENCY,
    LATENT,
    LONG_SPEEDUP,
    MINUTES,
    NOT_DISTILLED,
    OVER_BEAM,
    PARALLEL,
    RESCORED,
    SCALES,
    SHUFFLED,
    SPEEDUP,
    TEACHER_ITSELF,
    bottleneck,
    carries,
    hard,
    soft,
)
from smalti.experiments.tables.expectation_maximisation import PAPER

WMT_UNIT = "WMT'14 English to German, a GPU's milliseconds"
BIDIRECTIONAL = {"model.decoder": "bidirectional"}

declare(
    Table(
        name="translation-bottlenecks",
        paper=PAPER,
        where="Tables 1 and 4, section 5.1.1",
        title="Ways to make codes of a translation, beside translation word by word",
        kind="translation",
        base=LATENT,
        scales=SCALES,
        minutes={"tiny": 0.05, "laptop": MINUTES, "paper": 6000},
        arms=(
            Arm(
                "autoregressive",
                TEACHER_ITSELF,
                {"bleu": 27.0, "beam_bleu": 28.1, "latency_ms": 265, "speedup_over_beam": 1.25},
            ),
            Arm(
                "plain parallel",
                PARALLEL,
                {"bleu": 17.7, "rescored_bleu": 18.7, "latency_ms": 39},
            ),
            Arm("hard EM", hard(), {"bleu": 26.4, "latency_ms": 81, "speedup_over_beam": 4.08}),
            Arm("soft EM, 5 samples", soft(5), {"bleu": 26.4, "latency_ms": 81}),
            Arm(
                "soft EM, 10 samples",
                soft(10),
                {"bleu": 26.7, "latency_ms": 81, "speedup_over_beam": 4.08},
            ),
            Arm("Gumbel-softmax", bottleneck("gumbel", scores="linear"), {"bleu": 23.2}),
            Arm("semantic hashing", bottleneck("semantic_hash"), {"bleu": 24.1}),
            # As many codes as one codebook of the other arms.
            Arm(
                "product",
                bottleneck("product", num_codebooks=2, codebook_size=16),
                at={"paper": {"model.quantizer.codebook_size": 64}},
            ),
            Arm("soft EM, 10 samples, n_c 2", {**soft(10), "model.compressions": 2}),
            Arm(
                "soft EM, 10 samples, n_c 4",
                {**soft(10), "model.compressions": 4},
                {"bleu": 25.4, "latency_ms": 58, "speedup_over_beam": 5.71},
            ),
            Arm("hard EM, not distilled", {**hard(), **NOT_DISTILLED}, {"bleu": 21.4}),
            Arm("soft EM, 5 samples, not distilled", {**soft(5), **NOT_DISTILLED}, {"bleu": 22.4}),
            Arm("hard EM, bidirectional", {**hard(), **BIDIRECTIONAL}),
            Arm(
                "semantic hashing, not distilled",
                {**bottleneck("semantic_hash"), **NOT_DISTILLED},
                {"bleu": 19.8, "latency_ms": 105},
                only=("paper",),
            ),
        ),
        metrics=(
            BLEU,
            BEAM_BLEU,
            RESCORED,
            CHRF,
            FORCED,
            SHUFFLED,
            IN_USE,
            LATENCY,
            SPEEDUP,
            LONG_SPEEDUP,
            OVER_BEAM,
        ),
        unit=WMT_UNIT,
        drawn=(Against("bleu", "speedup"),),
        claims=(
            Claim(
                "Codes by nearest codeword translate better than semantic hashing, and that "
                "better than Gumbel-softmax.",
                (
                    Less("bleu", "semantic hashing", "hard EM"),
                    Less("bleu", "Gumbel-softmax", "semantic hashing"),
                ),
            ),
            Claim(
                "A single codebook needs no product quantization.",
                (Less("bleu", "product", "hard EM"),),
                why="Both have as many codes for a latent. The paper compares with numbers of "
                "earlier work, whose codebook was 16 times larger.",
            ),
            Claim(
                "Soft EM with distillation almost matches the greedy teacher, and is 3.3 times "
                "faster.",
                (
                    # 27.0 over 26.7 in the paper.
                    Less("bleu", "autoregressive", "soft EM, 10 samples", factor=1.02),
                    Less(
                        "latency_ms",
                        "soft EM, 10 samples",
                        "soft EM, 10 samples",
                        other_metric="teacher_latency_ms",
                        factor=1 / 3.3,
                    ),
                ),
                why="Both are timed by turns on the same sentences, one at a time, one thread. "
                "Captions are short: a teacher that writes a dozen words has less to lose.",
            ),
            Claim(
                "Soft EM with distillation is 1.4 BLEU below beam search, and 4.1 times faster.",
                (
                    # 28.1 over 26.7 in the paper.
                    Less("beam_bleu", "autoregressive", "soft EM, 10 samples", "bleu", 1.053),
                    Less(
                        "latency_ms",
                        "soft EM, 10 samples",
                        "soft EM, 10 samples",
                        other_metric="teacher_beam_latency_ms",
                        factor=1 / 4.1,
                    ),
                ),
            ),
            Claim(
                "Without distillation soft EM with five samples translates better than hard EM.",
                (Less("bleu", "hard EM, not distilled", "soft EM, 5 samples, not distilled"),),
                why="By 1.0 BLEU in the paper, of one run each.",
            ),
            Claim(
                "More compression is faster and translates worse.",
                (
                    Less("bleu", "soft EM, 10 samples, n_c 4", "soft EM, 10 samples"),
                    Less("bleu", "soft EM, 10 samples", "soft EM, 10 samples, n_c 2"),
                    Less("speedup", "soft EM, 10 samples", "soft EM, 10 samples, n_c 4"),
                    Less("speedup", "soft EM, 10 samples, n_c 2", "soft EM, 10 samples"),
                ),
                why="Times of equal networks differ by up to a half between runs here.",
            ),
            Claim(
                "Latents beat the parallel model without latents, which is faster.",
                (
                    Less("bleu", "plain parallel", "soft EM, 10 samples"),
                    Less("speedup", "soft EM, 10 samples", "plain parallel"),
                ),
                why="The paper's parallel model is that of others; ours has the same network, "
                "teacher and texts as the latent models.",
            ),
            Claim(
                "With half as many latents they beat the parallel model still.",
                (Less("bleu", "plain parallel", "soft EM, 10 samples, n_c 4"),),
                assumes=carries("soft EM, 10 samples, n_c 4"),
                why="Where latents say nothing, two parallel models are compared.",
            ),
            Claim(
                "Not in the paper: latents carry what is written. Those of the reference give more "
                "than predicted ones, and these more than those of another sentence.",
                (
                    Less(
                        "bleu",
                        "soft EM, 10 samples",
                        "soft EM, 10 samples",
                        other_metric="teacher_forced_bleu",
                    ),
                    Less(
                        "shuffled_bleu",
                        "soft EM, 10 samples",
                        "soft EM, 10 samples",
                        other_metric="bleu",
                    ),
                ),
                why="The paper's Figure 3 shows scores from the reference's latents alone; "
                "without the lower bound they do not tell codes from a decoder that needs none.",
            ),
        ),
    )
)

declare(
    Table(
        name="translation-study",
        paper=PAPER,
        where="Table 1",
        title="Hard and soft EM, distilled and not, with the decoder's mask and without, by seeds",
        kind="translation",
        base=LATENT,
        scales=SCALES,
        seeds={"laptop": 3},
        minutes={"tiny": 0.05, "laptop": MINUTES, "paper": 6000},
        arms=(
            Arm("hard EM", hard(), {"bleu": 26.4}),
            Arm("soft EM, 10 samples", soft(10), {"bleu": 26.7}),
            Arm("hard EM, not distilled", {**hard(), **NOT_DISTILLED}, {"bleu": 21.4}),
            Arm("soft EM, 10 samples, not distilled", {**soft(10), **NOT_DISTILLED}),
            Arm("hard EM, bidirectional", {**hard(), **BIDIRECTIONAL}),
        ),
        metrics=(BLEU, CHRF, FORCED, SHUFFLED, IN_USE, LATENCY, SPEEDUP, LONG_SPEEDUP, OVER_BEAM),
        unit=f"{WMT_UNIT}, one run each",
        drawn=(ByArm("bleu"),),
        claims=(
            Claim(
                "Soft EM translates better than hard EM.",
                (
                    Less("bleu", "hard EM", "soft EM, 10 samples"),
                    Less("bleu", "hard EM, not distilled", "soft EM, 10 samples, not distilled"),
                ),
                why="The paper's gaps are 0.3 BLEU with ten samples, distilled, and 1.0 with five, "
                "not distilled, of one run each. With five ours is in translation-bottlenecks.",
            ),
            Claim(
                "Distillation improves the translations.",
                (
                    Less("bleu", "hard EM, not distilled", "hard EM"),
                    Less("bleu", "soft EM, 10 samples, not distilled", "soft EM, 10 samples"),
                ),
                why="A teacher says the same thing always in the same way, so that codes of a "
                "source are easier to guess.",
            ),
            Claim(
                "A latent model is faster than its autoregressive teacher, greedy or not.",
                (
                    Less("latency_ms", "hard EM", "hard EM", other_metric="teacher_latency_ms"),
                    Less(
                        "latency_ms", "hard EM", "hard EM", other_metric="teacher_beam_latency_ms"
                    ),
                ),
            ),
            Claim(
                "Not in the paper: latents carry what is written, with hard and with soft EM.",
                tuple(
                    comparison
                    for arm in ("hard EM", "soft EM, 10 samples", "hard EM, not distilled")
                    for comparison in (
                        Less("bleu", arm, arm, other_metric="teacher_forced_bleu"),
                        Less("shuffled_bleu", arm, arm, other_metric="bleu"),
                    )
                ),
            ),
        ),
    )
)
