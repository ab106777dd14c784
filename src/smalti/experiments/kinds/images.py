"""Image models: an autoencoder with its priors, trained and measured on unseen images."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar

import torch

from smalti.autoencoders import Autoencoder, CodedAutoencoder, Convolutional, gradient_gap
from smalti.data.images import Images as ImageSet
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
from smalti.recipes.images.codebook_balance import place_figures
from smalti.recipes.images.coding import encode_all, has_codes
from smalti.training import as_settings, read_journal

# Images for the gradient gap, a mean over images.
GAP_IMAGES = 256


@kinds.register("images")
class Images(Kind):
    """Settings are those of ``AutoencoderConfig``, and ``limit``: how many test images to use."""

    together: ClassVar[bool] = True

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
        course = [
            {"step": line["step"], **line["metrics"]}
            for line in read_journal(place / "autoencoder")
            if line["kind"] == "evaluate"
        ]
        metrics = {
            **_quality(found),
            **_rates(found),
            **_codes(found),
            **_places(run, images),
            **_gap(run, images.pixels[:GAP_IMAGES]),
            **_on_the_way(course, config.training.steps or 0),
            **_numbers(run.autoencoder),
        }
        seconds = sum(stage.seconds for stage in outcome.stages.values())
        details = {"part": part, "evaluation": found.as_dict(), "course": course}
        return Measured(metrics, details, {"training_seconds": seconds})


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
    if len(levels) > 1:
        # A level without use is not seen in what all have together.
        for name, level in found.levels.items():
            made[f"entropy_bits_{name}"] = level["entropy_at_a_place_bits"]["corrected"]
            made[f"used_share_{name}"] = level["used_share"]
    shared = [level["mutual_information_bits"] for level in levels]
    known = [one["corrected"] for one in shared if one is not None]
    if known:
        made["shared_bits"] = sum(known) / len(known)
    return made


def _places(run: Run, images: ImageSet) -> dict[str, float]:
    """What a place costs, a pool's choice included, and how many of all codewords occur."""
    if not isinstance(run.autoencoder, Convolutional) or not has_codes(run.autoencoder):
        return {}
    (codes,) = encode_all(run.autoencoder, images.pixels)
    told = place_figures(run.autoencoder.quantizer, codes)
    # A pool's words share their numbers: only here are they told apart.
    made = {"place_bits": told["rate_bits"], "used_share": told["codes_in_use"] / told["codewords"]}
    shares = enumerate(told["shares"] or ())
    return made | {f"share_{book}": share for book, share in shares}


def _on_the_way(course: list[dict[str, Any]], steps: int) -> dict[str, float]:
    """Held-out figures of the first evaluation, after a quarter of all steps, and of the last."""
    if len(course) < 2:
        return {}
    quarter = next(line for line in course if line["step"] >= steps / 4)
    stops = {"first": course[0], "quarter": quarter, "last": course[-1]}
    made = {
        f"{stop}_{name.replace('/', '_')}": float(value)
        for stop, line in stops.items()
        for name, value in line.items()
        if name != "step" and value is not None
    }
    first, last = (made.get(f"{stop}_gradient_gap", 0.0) for stop in ("first", "last"))
    if min(first, last) > 0:
        made["gradient_gap_change"] = abs(math.log(last / first))
    return made


def _numbers(model: Autoencoder) -> dict[str, float]:
    """What is stored: weights of the network, and numbers of the codebooks."""
    books = {
        name: part.numel()
        for name, part in (*model.named_parameters(), *model.named_buffers())
        if name.endswith("codewords")
    }
    weights = sum(p.numel() for name, p in model.named_parameters() if name not in books)
    return {"parameters": float(weights), "codebook_numbers": float(sum(books.values()))}


def _gap(run: Run, pixels: torch.Tensor) -> dict[str, float]:
    """Where quantizers round to codewords; other models have no gap."""
    if not isinstance(run.autoencoder, CodedAutoencoder):
        return {}
    try:
        gap = gradient_gap(run.autoencoder, pixels)
    except SmaltiError:
        return {}
    return {"gradient_gap": gap.size, "relative_gradient_gap": gap.relative}
