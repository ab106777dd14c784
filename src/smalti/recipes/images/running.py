"""Train an image model as a whole: the autoencoder, then a prior of each level of its codes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from smalti.autoencoders import Autoencoder, build_autoencoder
from smalti.errors import require
from smalti.priors import Level, LevelsPrior, Prior, build_prior
from smalti.recipes.images.autoencoder_task import AutoencoderTask
from smalti.recipes.images.coding import code_levels, encode_all
from smalti.recipes.images.config import AutoencoderConfig, PriorSettings
from smalti.recipes.images.image_sets import TrainingImages, read_training_images
from smalti.recipes.images.prior_task import PriorTask, require_trainable
from smalti.recipes.images.saved_run import Run, save_run
from smalti.recipes.run_directories import (
    FOLDER,
    RunOutcome,
    free_place,
    named,
    weights_digest,
)
from smalti.together import is_first, meet
from smalti.training import train


def train_run(
    config: AutoencoderConfig, run_directory: str | Path, resume: bool = False
) -> RunOutcome:
    """Train an autoencoder and its priors, each stage in a directory of its own.

    Args:
        config: What is trained, on what and how.
        run_directory: Where everything is written; the trained model into its part ``model``.
        resume: Go on with what is there. Without it, a directory that has been trained into is
            left alone.
    """
    place = free_place(run_directory)
    images = read_training_images(config.data)
    autoencoder = _new_autoencoder(config, images)
    levels = code_levels(autoencoder, *images.train.shape[1:])
    settings = _prior_settings(config, levels)
    lasting = {
        # The images themselves in the place of where they lie.
        "data": {
            **config.data.model_dump(mode="json", exclude={"source"}),
            "fingerprint": images.fingerprint,
        },
        "model": config.model,
    }
    learned = _new_priors(settings, levels)
    for prior, own in zip(learned, settings, strict=True):
        require_trainable(prior, own, autoencoder, images.train.pixels[:1])
    task = AutoencoderTask(
        autoencoder, images.train, images.valid, config.data, config.training, config.watch
    )
    stages = {
        "autoencoder": train(task, config.training, place / "autoencoder", resume, config=lasting)
    }
    if not stages["autoencoder"].finished:
        return RunOutcome(False, stages, None)
    autoencoder.requires_grad_(False).eval()
    priors: dict[str, LevelsPrior] = {}
    if levels:
        codes = encode_all(autoencoder, images.train.pixels)
        valid = encode_all(autoencoder, images.valid.pixels)
        priors = _counted_priors(levels, codes)
        digest = weights_digest(autoencoder)
        for number, (prior, own) in enumerate(zip(learned, settings, strict=True)):
            name = f"prior-{autoencoder.level_name(number)}" if len(levels) > 1 else "prior"
            prior_task = PriorTask(prior, codes, valid, own, autoencoder, images.train.pixels)
            config_of_stage = {
                "prior": own.model_dump(mode="json", exclude={"training"}),
                "autoencoder": digest,
            }
            stages[name] = train(
                prior_task, own.training, place / name, resume, config=config_of_stage
            )
            if not stages[name].finished:
                return RunOutcome(False, stages, None)
        if learned:
            # A level may have another kind of prior than the next.
            names = dict.fromkeys(prior.spec()["prior"] for prior in learned)
            priors["+".join(names)] = LevelsPrior([prior.cpu() for prior in learned])
    figures = {name: dict(outcome.evaluation) for name, outcome in stages.items()}
    size = (images.train.shape[1], images.train.shape[2])
    run = Run(config, autoencoder.cpu(), priors, size, images.fingerprint, figures)
    if is_first():
        save_run(run, place)
    meet()
    return RunOutcome(True, stages, place / FOLDER)


def _new_autoencoder(config: AutoencoderConfig, images: TrainingImages) -> Autoencoder:
    known = {"channels": images.train.shape[0], "bits": images.train.bits}
    with torch.random.fork_rng(devices=[]), named("model"):
        torch.manual_seed(config.training.seed)
        return build_autoencoder({**known, **config.model})


def _prior_settings(config: AutoencoderConfig, levels: Sequence[Level]) -> list[PriorSettings]:
    """The settings of each level's prior; none where none learns."""
    if config.prior is None:
        return []
    require(bool(levels), "a model without codes has no prior; leave the setting prior out")
    if isinstance(config.prior, PriorSettings):
        return [config.prior] * len(levels)
    require(
        len(config.prior) == len(levels),
        f"expected a prior for each of {len(levels)} levels, top first, or one for all, got "
        f"{len(config.prior)}",
    )
    return list(config.prior)


def _new_priors(settings: Sequence[PriorSettings], levels: Sequence[Level]) -> list[Prior]:
    made: list[Prior] = []
    for number, own in enumerate(settings):
        shared = all(other is own for other in settings)
        with (
            torch.random.fork_rng(devices=[]),
            named("prior.model" if shared else f"prior.{number}.model"),
        ):
            torch.manual_seed(own.training.seed)
            spec = {"prior": "autoregressive", **own.model}
            made.append(build_prior(spec, level=levels[number], above=levels[:number]))
    return made


def _counted_priors(levels: Sequence[Level], codes: Sequence[Tensor]) -> dict[str, LevelsPrior]:
    unigram = LevelsPrior.over(levels, "unigram")
    for prior, grids in zip(unigram.members(), codes, strict=True):
        # With several processes each has encoded all images, and so counts the same.
        fit: Any = prior
        fit.fit(grids.split(1024))
    return {"uniform": LevelsPrior.over(levels, "uniform"), "unigram": unigram}
