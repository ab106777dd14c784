"""Train all arms of a study and measure them; a study that was stopped goes on where it was."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from smalti.artifacts import as_path, versions, write_file
from smalti.autoencoders import build_autoencoder
from smalti.errors import ArtifactError, require
from smalti.recipes.images.codebook_balance.arms import Arm, Pair, arms_of, require_pairs
from smalti.recipes.images.codebook_balance.findings import ArmFigures, Findings
from smalti.recipes.images.codebook_balance.measuring import measure
from smalti.recipes.images.config import AutoencoderConfig
from smalti.recipes.images.image_sets import (
    TrainingImages,
    read_training_images,
    read_unseen_images,
)
from smalti.recipes.images.running import train_run
from smalti.recipes.images.saved_run import load_run
from smalti.training import as_settings, read_journal
from smalti.training.settings import require_same

PLAN, FIGURES, RESULTS = "plan.json", "figures.json", "results.json"
# How often training is looked at, and with how many held-out images.
LOOKS, WATCHED = 6, 128
# Settings of the autoencoder that each arm brings.
OWN = frozenset({"quantizer", "dim"})


def tune_codebook(
    config: AutoencoderConfig,
    pairs: Sequence[Pair],
    directory: str | Path,
    *,
    seeds: Sequence[int] = (0,),
    controls: bool = False,
    resume: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Findings | None:
    """Train codebooks of one capacity, and the pool of them, for as many steps each; measure all.

    Each arm and seed is a run of its own, which every command for runs takes.

    Args:
        config: A ``convolutional`` autoencoder; arms bring their own ``quantizer`` and ``dim``,
            and none has a prior that learns.
        pairs: Codebook sizes and widths, all of the same product.
        directory: Where runs, figures and ``results.json`` are written.
        seeds: Each arm is trained with each of them.
        controls: Also train what tells where a difference comes from: one codebook that stores
            as many numbers as the pool, with the codewords of its largest and with all of its
            codewords; a pool with a random selector; one whose choice rules slabs of channels.
        resume: Go on with a study that was stopped. Seeds and controls may be added to it.
        say: Told what is done next.

    Returns:
        The findings; None where a signal stopped a run before its end.
    """
    ordered, place = require_pairs(pairs), as_path(directory)
    require(
        len(seeds) > 0 and len(set(seeds)) == len(seeds),
        f"expected one or more seeds, all different, got {list(seeds)}",
    )
    model = config.model
    require(
        model.get("autoencoder") == "convolutional",
        "expected a config with model.autoencoder: convolutional, which has one grid of codes, "
        f"got {model.get('autoencoder')!r}",
    )
    images = read_training_images(config.data)
    steps = _steps(config, len(images.train))
    arms = arms_of(ordered, model.get("width", 128), steps, controls)
    base = _common(config, steps)
    _require_buildable(base, arms, images)
    _begin(place, _plan(base, ordered, images), resume)
    found: dict[str, dict[int, dict[str, Any]]] = {arm.name: {} for arm in arms}
    turns = [(arm, seed) for seed in seeds for arm in arms]
    for number, (arm, seed) in enumerate(turns, start=1):
        run = place / arm.name / f"seed-{seed}"
        if not (run / FIGURES).is_file():
            say(f"{arm.name}, seed {seed}: {number} of {len(turns)}")
            if not _train_and_measure(base, arm, seed, run, images):
                return None
        found[arm.name][seed] = _read_json(run / FIGURES)
    findings = Findings(
        pairs=ordered,
        steps=steps,
        seeds=tuple(seeds),
        data=next(iter(found[arms[0].name].values()))["data"],
        machine={
            "machine": platform.machine(),
            "threads": torch.get_num_threads(),
            "versions": versions(),
        },
        arms=tuple(
            ArmFigures(
                arm,
                {seed: one["figures"] for seed, one in found[arm.name].items()},
                {seed: one["history"] for seed, one in found[arm.name].items()},
            )
            for arm in arms
        ),
    )
    write_file(place / RESULTS, json.dumps(findings.as_dict(), indent=2) + "\n")
    return findings


def _steps(config: AutoencoderConfig, rows: int) -> int:
    training = config.training
    if training.steps is not None:
        return training.steps
    return (training.epochs or 1) * (rows // min(rows, training.batch_size))


def _common(config: AutoencoderConfig, steps: int) -> dict[str, Any]:
    """The settings that all arms share."""
    content = config.model_dump(mode="json")
    model = {key: value for key, value in content["model"].items() if key not in OWN}
    training = {**content["training"], "steps": steps, "epochs": None, "keep_checkpoints": 1}
    often = training["evaluate_every"]
    if often is None or often * 2 > steps:
        training["evaluate_every"] = math.ceil(steps / LOOKS)
    watch = content["watch"] or WATCHED
    return {**content, "model": model, "training": training, "prior": None, "watch": watch}


def _config_of(base: Mapping[str, Any], arm: Arm, seed: int) -> AutoencoderConfig:
    model = {**base["model"], **arm.model}
    return as_settings(AutoencoderConfig, {**base, "model": model}).with_seed(seed)


def _require_buildable(
    base: Mapping[str, Any], arms: Sequence[Arm], images: TrainingImages
) -> None:
    """All arms are made once, so that a wrong setting is told before anything is trained."""
    known = {"channels": images.train.shape[0], "bits": images.train.bits}
    for arm in arms:
        made = build_autoencoder({**known, **base["model"], **arm.model})
        made.grids(*images.train.shape[1:])


def _plan(base: Mapping[str, Any], pairs: Sequence[Pair], images: TrainingImages) -> dict[str, Any]:
    """What all arms of a study have in common; the images stand for where they lie."""
    training = as_settings(AutoencoderConfig, base).training
    lasting = {key: value for key, value in training.lasting().items() if key != "seed"}
    data = {key: value for key, value in base["data"].items() if key != "source"}
    return {
        "data": {**data, "fingerprint": images.fingerprint},
        "model": base["model"],
        "training": {**lasting, "steps": training.steps},
        "pairs": [list(pair) for pair in pairs],
    }


def _begin(place: Path, plan: Mapping[str, Any], resume: bool) -> None:
    """Take a directory for a study, or go on in one that has the same plan."""
    require(
        not place.exists() or place.is_dir(),
        f"can't write a study to {place}: it is a file; choose a directory",
        ArtifactError,
    )
    file = place / PLAN
    if file.is_file():
        require(resume, f"{place} holds a study; resume it, or choose another directory")
        require_same(_read_json(file), json.loads(json.dumps(plan)), place)
        return
    try:
        free = not place.exists() or not any(place.iterdir())
        require(
            free, f"{place} is not empty and holds no study; choose a new directory", ArtifactError
        )
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArtifactError(f"can't write a study to {place}: {error}") from error
    write_file(file, json.dumps(plan, indent=2) + "\n")


def _train_and_measure(
    base: Mapping[str, Any], arm: Arm, seed: int, run: Path, images: TrainingImages
) -> bool:
    """One arm with one seed; False where a signal stopped it."""
    # A run whose training ended, but not its measuring, has nothing left to train.
    outcome = train_run(_config_of(base, arm, seed), run, resume=run.exists())
    if not outcome.finished:
        return False
    trained = load_run(run)
    unseen, part = read_unseen_images(trained, base["data"]["source"])
    figures = measure(trained, unseen, images.train)
    seconds = outcome.stages["autoencoder"].seconds
    content = {
        "data": {"source": unseen.source, "part": part, "images": len(unseen)},
        "figures": {**figures, "seconds": seconds},
        "history": _history(run / "autoencoder", len(arm.pool)),
    }
    write_file(run / FIGURES, json.dumps(content, indent=2) + "\n")
    return True


def _history(stage: Path, codebooks: int) -> list[dict[str, Any]]:
    """What evaluations of held-out images said while an arm was trained."""
    kept = ("mse_0_to_1", "gradient_gap", "relative_gradient_gap", "rate_bits")
    entries = []
    for line in read_journal(stage):
        if line["kind"] == "evaluate":
            told = line["metrics"]
            entry = {"step": line["step"], **{name: told[name] for name in kept if name in told}}
            if codebooks > 1:
                entry["shares"] = [told[f"share/{index}"] for index in range(codebooks)]
            entries.append(entry)
    return entries


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArtifactError(
            f"{path} can't be read: {error}; remove it, and it is made again"
        ) from error
    return content
