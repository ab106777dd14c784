"""Image models: an autoencoder with its priors, trained and measured on unseen images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from smalti.autoencoders import CodedAutoencoder, gradient_gap
from smalti.errors import ConfigError, SmaltiError
from smalti.experiments.kinds.base import Kind, Measured, kinds
from smalti.recipes.images import (
    AutoencoderConfig,
    Evaluation,
    Run,
    evaluate_run,
    load_run,
    read_unseen_images,
    train_run,
)
from smalti.training import as_settings

# Images for the gradient gap, a mean over images.
GAP_IMAGES = 256


@kinds.register("images")
class Images(Kind):
    """Settings are those of ``AutoencoderConfig``, and ``limit``: how many test images to use."""

    def measure(self, settings: dict[str, Any], seed: int, place: Path) -> Measured:
        """Train by a config, measure the test images."""
        limit = settings.pop("limit", None)
        config = as_settings(AutoencoderConfig, {"kind": "autoencoder", **settings}).with_seed(seed)
        outcome = train_run(config, place, resume=any(place.iterdir()))
        if not outcome.finished:
            raise ConfigError("stopped before the end; the same command goes on")
        run = load_run(place)
        images, part = read_unseen_images(run, config.data.source, None)
        if limit is not None:
            images = images.select(range(min(limit, len(images))))
        found = evaluate_run(run, images)
        metrics = {
            **_quality(found),
            **_rates(found),
            **_codes(found),
            **_gap(run, images.pixels[:GAP_IMAGES]),
            "parameters": float(sum(one.numel() for one in run.autoencoder.parameters())),
            "training_seconds": sum(stage.seconds for stage in outcome.stages.values()),
        }
        return Measured(metrics, {"part": part, "evaluation": found.as_dict()})


def _quality(found: Evaluation) -> dict[str, float]:
    made = {"mse": found.quality.mse_0_to_1, "ssim": found.quality.ssim}
    if found.quality.psnr_db is not None:
        made["psnr"] = found.quality.psnr_db
    for level, quality in found.alone.items():
        made[f"mse_{level}_alone"] = quality.mse_0_to_1
    return made


def _rates(found: Evaluation) -> dict[str, float]:
    made: dict[str, float] = {}
    for prior, bits in found.bits_per_dim.items():
        made[f"rate_{prior}"] = bits.rate
        if bits.distortion is not None and bits.total is not None:
            made["distortion"] = bits.distortion
            made[f"bits_per_dim_{prior}"] = bits.total
            # The last is the best prior of a run.
            made["rate"], made["bits_per_dim"] = bits.rate, bits.total
    return made


def _codes(found: Evaluation) -> dict[str, float]:
    if not found.levels:
        return {}
    levels = list(found.levels.values())
    in_use = sum(book["in_use"] for level in levels for book in level["codebooks"])
    size = sum(book["size"] for level in levels for book in level["codebooks"])
    made = {
        "used_share": in_use / size,
        "entropy_bits": sum(level["entropy_at_a_place_bits"]["corrected"] for level in levels)
        / len(levels),
    }
    shared = [level["mutual_information_bits"] for level in levels]
    known = [one["corrected"] for one in shared if one is not None]
    if known:
        made["shared_bits"] = sum(known) / len(known)
    return made


def _gap(run: Run, pixels: torch.Tensor) -> dict[str, float]:
    """Where quantizers round to codewords; other models have no gap."""
    if not isinstance(run.autoencoder, CodedAutoencoder):
        return {}
    try:
        gap = gradient_gap(run.autoencoder, pixels)
    except SmaltiError:
        return {}
    return {"gradient_gap": gap.size, "relative_gradient_gap": gap.relative}
