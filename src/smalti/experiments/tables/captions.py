"""What the tables of translation share: columns, texts, the teacher, and how arms are trained."""

from __future__ import annotations

from typing import Any

from smalti.experiments.comparisons import Less
from smalti.experiments.table import Metric, Scale

BLEU = Metric("bleu", "BLEU", "higher")
BEAM_BLEU = Metric("beam_bleu", "BLEU, beam search", "higher")
CHRF = Metric("chrf", "chrF", "higher")
FORCED = Metric("teacher_forced_bleu", "BLEU from the reference's latents", "higher")
SHUFFLED = Metric("shuffled_bleu", "BLEU from another's latents", "neither")
IN_USE = Metric("codes_in_use", "codes in use", "higher")
USED = Metric("used_share", "share of codes in use", "higher")
LATENCY = Metric("latency_ms", "ms a sentence")
RESCORED = Metric("rescored_bleu", "BLEU, the best of 10 lengths by the teacher", "higher")
SPEEDUP = Metric("speedup", "times as fast as the teacher, greedy", "higher")
LONG_SPEEDUP = Metric("long_speedup", "the same of texts of 40 words and more", "higher")
OVER_BEAM = Metric("speedup_over_beam", "times as fast as the teacher, beam", "higher")

# The number that the time of an arm goes by: about eleven minutes on one thread.
STEPS = 1400
MINUTES = 11.0

TEXTS: dict[str, Any] = {
    "source": "multi30k/train.en",
    "target": "multi30k/train.de",
    "valid_source": "multi30k/val.en",
    "valid_target": "multi30k/val.de",
    "vocabulary": 6000,
}
NETWORK: dict[str, Any] = {"dim": 192, "depth": 4, "decoder_depth": 3, "heads": 4, "ratio": 2}
# The settings of configs/translation-autoregressive-multi30k.yaml: a model that was trained with
# that file serves as it is.
TEACHER: dict[str, Any] = {
    "kind": "translation",
    "data": TEXTS,
    "model": {
        "translator": "autoregressive",
        **NETWORK,
        "decoder_depth": 4,
        "dropout": 0.3,
        "label_smoothing": 0.1,
    },
    "training": {
        "steps": 6000,
        "batch_size": 2048,
        "learning_rate": 2e-3,
        "schedule": {"kind": "cosine", "warm_up": 800, "lowest": 0.05},
        "precision": "bf16",
        "clip_norm": 1.0,
        "log_every": 50,
        "evaluate_every": 1000,
        "checkpoint_every": 200,
    },
    "averaged_share": 0.15,
}


def dotted(above: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings by dotted key, so that scales and arms can change single ones."""
    return {f"{above}.{name}": value for name, value in settings.items()}


# What all models of captions have in common.
CAPTIONS: dict[str, Any] = {
    **dotted("data", TEXTS),
    **dotted("model", NETWORK),
    "model.label_smoothing": 0.1,
    "training.steps": STEPS,
    "training.batch_size": 1024,
    "training.schedule": {"kind": "cosine", "warm_up": 0.07, "lowest": 0.1},
    "training.precision": "bf16",
    "training.clip_norm": 1.0,
    "training.log_every": 25,
    "training.evaluate_every": STEPS // 3,
    "training.checkpoint_every": 100,
    "averaged_share": 0.1,
    "judged_sentences": 200,
    "unseen.data": "multi30k:test_2016_flickr",
}
# What only latent models have.
LATENT_ONLY: dict[str, Any] = {
    "model.compressions": 3,
    "model.predictor_depth": 2,
    "model.gold_until": 0.1,
    "model.guesses": 0.3,
}
# What a scale says of bottlenecks. Each takes what is its own, see ``bottleneck``.
BOTTLENECKS: dict[str, Any] = {
    "codebook_size": 256,
    "decay": 0.99,
    "dead": {"kind": "revive", "period": 20},
    "bits": 8,
    # Before codes are frozen.
    "anneal_steps": 400,
    "warmup_steps": 400,
}
OWN = {
    "vector": ("codebook_size", "decay", "dead"),
    "soft_em": ("codebook_size", "decay", "dead"),
    "gumbel": ("codebook_size", "anneal_steps"),
    "semantic_hash": ("bits", "warmup_steps"),
    "product": ("decay", "dead"),
}
# A latent model that starts from its teacher and learns what the teacher makes of the sources.
LATENT: dict[str, Any] = {
    **CAPTIONS,
    **LATENT_ONLY,
    **dotted("model.quantizer", BOTTLENECKS),
    "model.translator": "latent",
    "model.dropout": 0.2,
    "training.learning_rate": 1e-3,
    "frozen_codes_share": 0.6,
    "teacher.config": TEACHER,
}

# Seconds instead of minutes: a thousand captions, a few steps.
TINY_TEXTS: dict[str, Any] = {
    "source": "multi30k/val.en",
    "target": "multi30k/val.de",
    "valid_source": None,
    "valid_target": None,
    "vocabulary": 400,
}
TINY_NETWORK: dict[str, Any] = {"dim": 32, "depth": 1, "decoder_depth": 1, "heads": 2, "ratio": 2}
TINY_TRAINING: dict[str, Any] = {"steps": 4, "batch_size": 256, "learning_rate": 1e-3}
TINY_DECODING: dict[str, Any] = {"beam": 2, "length_penalties": [1.0]}
TINY_CAPTIONS: dict[str, Any] = {
    **dotted("data", TINY_TEXTS),
    **dotted("model", TINY_NETWORK),
    **dotted("training", TINY_TRAINING),
    "training.precision": "float32",
    "training.evaluate_every": 4,
    "training.checkpoint_every": 4,
    "judged_sentences": 2,
    "decoding": TINY_DECODING,
    "unseen.sentences": 12,
    "unseen.timed": 2,
}
TINY: dict[str, Any] = {
    **TINY_CAPTIONS,
    "model.predictor_depth": 1,
    "teacher.config": {
        "kind": "translation",
        "data": TINY_TEXTS,
        "model": {"translator": "autoregressive", **TINY_NETWORK},
        "training": TINY_TRAINING,
        "judged_sentences": 2,
        "decoding": TINY_DECODING,
    },
}

# The published setting: WMT'14, as many layers and steps, no weights from the teacher.
WMT_TEXTS = {
    "source": "wmt14/train.en",
    "target": "wmt14/train.de",
    "valid_source": "wmt14/newstest2013.en",
    "valid_target": "wmt14/newstest2013.de",
}
WMT: dict[str, Any] = {**WMT_TEXTS, "vocabulary": 32_768}
WMT_NETWORK: dict[str, Any] = {"dim": 512, "depth": 6, "decoder_depth": 6, "heads": 8}
WMT_TRAINING: dict[str, Any] = {
    "steps": 250_000,
    "batch_size": 2048,
    "learning_rate": 7e-4,
    "schedule": {"kind": "inverse_root", "warm_up": 4000},
    "evaluate_every": 10_000,
    "checkpoint_every": 1000,
}
WMT_CAPTIONS: dict[str, Any] = {
    **dotted("data", WMT),
    **dotted("model", WMT_NETWORK),
    **dotted("training", WMT_TRAINING),
    "unseen.data": "wmt14:newstest2014",
}
PUBLISHED: dict[str, Any] = {
    **WMT_CAPTIONS,
    "model.ratio": 8,
    "model.predictor_depth": 6,
    "model.gold_until": 0.2,
    "model.guesses": 0.0,
    "model.dropout": 0.1,
    # Nothing is revived.
    **dotted("model.quantizer", {"codebook_size": 2**12, "decay": 0.999, "dead": "keep"}),
    **dotted("model.quantizer", {"bits": 12, "anneal_steps": 50_000, "warmup_steps": 50_000}),
    "frozen_codes_share": 0.0,
    "teacher.config": {
        "kind": "translation",
        "data": WMT,
        "model": {"translator": "autoregressive", **WMT_NETWORK, "dropout": 0.1},
        "training": WMT_TRAINING,
    },
    "teacher.weights": False,
}
SCALES: dict[Scale, dict[str, Any]] = {"tiny": TINY, "laptop": {}, "paper": PUBLISHED}
# For tables of many arms a laptop has half of the time.
SHORTER: dict[str, Any] = {
    "training.steps": STEPS // 2,
    "training.evaluate_every": STEPS // 2,
}
SHORTER_SCALES: dict[Scale, dict[str, Any]] = {**SCALES, "laptop": SHORTER}
SHORTER_MINUTES = MINUTES / 2

# Arms: without distillation, without latents, and the teacher itself.
NOT_DISTILLED: dict[str, Any] = {"teacher.texts": False}
PARALLEL: dict[str, Any] = {
    "model.translator": "parallel",
    "model.quantizer": None,
    **dict.fromkeys(LATENT_ONLY),
    "unseen.lengths": 10,
}
TEACHER_ITSELF: dict[str, Any] = {"model": None}


def carries(*arms: str) -> tuple[Less, ...]:
    """That latents say something: those of another sentence do not do as well as the right ones."""
    return tuple(
        Less("shuffled_bleu", arm, arm, other_metric="teacher_forced_bleu", factor=0.9)
        for arm in arms
    )


def bottleneck(quantizer: str, **settings: Any) -> dict[str, Any]:
    """The settings of an arm with that quantizer.

    Args:
        quantizer: Its registered name.
        settings: What the scale does not say, or not so.
    """
    others = {name: None for name in BOTTLENECKS if name not in OWN[quantizer]}
    return dotted("model.quantizer", {"quantizer": quantizer, **others, **settings})


def hard(**settings: Any) -> dict[str, Any]:
    """The nearest codeword, followed by a moving average: hard EM."""
    return bottleneck("vector", **settings)


def soft(samples: int, **settings: Any) -> dict[str, Any]:
    """Soft EM; who predicts codes learns all that were drawn.

    Args:
        samples: Codes drawn for each latent, n_s in the paper.
        settings: Further ones of the quantizer.
    """
    # With the paper's temperature of 1 the softmax of wide vectors is one-hot.
    drawn = {"samples": samples, "temperature": "scaled", **settings}
    return {**bottleneck("soft_em", **drawn), "model.predictor_labels": "assignments"}
