"""The report of an image model: what becomes of images, its codes, and how it learned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor

from smalti.analysis import (
    CodeGroup,
    Finding,
    change_rate,
    code_distribution,
    entropy_and_information,
    reconstructions,
)
from smalti.autoencoders import build_autoencoder
from smalti.data.images import Images
from smalti.errors import DataError
from smalti.recipes.images import load_run, read_unseen_images
from smalti.recipes.images.coding import encode_all, has_codes
from smalti.recipes.images.saved_run import Run
from smalti.report.mosaic import mosaic
from smalti.report.page import TIMES, Headline, Report
from smalti.report.stages import run_directory, stage_curves
from smalti.report.table_headline import megabytes
from smalti.training import Checkpoints

AUTOENCODER = "autoencoder"
# Images that are looked at; more change the last digits, and take long.
IMAGES = 512
# Their codes are compared between checkpoints.
COMPARED = 128


def report_run(
    path: Path, data: str | None = None, split: str | None = None, size: int | None = None
) -> Report:
    """Analyse a run.

    Args:
        path: The directory that was trained into, or its part ``model`` alone.
        data: Images; without it those that the run was trained on, as far as held out.
        split: Which part of them.
        size: To resize them to.
    """
    run = load_run(path)
    notes: list[str] = []
    images: Images | None = None
    try:
        images, part = read_unseen_images(run, data or run.config.data.source, split, size)
        notes.append(f"Images: {images.source}, {part}, the first {min(IMAGES, len(images)):,}.")
    except DataError as error:
        if data is not None:
            raise
        notes.append(f"Without images: {error}.")
    stages = run_directory(path)
    found: list[Finding] = []
    groups: list[CodeGroup] = []
    if images is not None:
        pixels = images.pixels[:IMAGES]
        found.append(reconstructions(run, pixels))
        groups = _groups(run, pixels)
        if groups:
            found += [code_distribution(groups), entropy_and_information(groups)]
        found.extend(_changes(run, stages / AUTOENCODER, pixels[:COMPARED]))
    found.extend(stage_curves(stages, AUTOENCODER))
    return Report(_headline(path, run, found), found, mosaic=mosaic(groups), notes=notes)


def _groups(run: Run, pixels: Tensor) -> list[CodeGroup]:
    """The codes of images, a group a level."""
    model = run.autoencoder
    if not has_codes(model):
        return []
    grids = encode_all(model, pixels)
    names = [model.level_name(n) if len(grids) > 1 else "codes" for n in range(len(grids))]
    return [
        CodeGroup(name, codes, sizes)
        for name, codes, sizes in zip(names, grids, model.code_sizes, strict=True)
    ]


def _changes(run: Run, stage: Path, pixels: Tensor) -> Iterator[Finding]:
    """Codes at the checkpoints that are left."""
    kept = Checkpoints(stage)
    steps = kept.steps()
    if len(steps) < 2 or not has_codes(run.autoencoder):
        return
    model = build_autoencoder(run.autoencoder.spec())
    levels: dict[str, list[tuple[int, Tensor]]] = {}
    for step in steps:
        model.load_state_dict(kept.read(step).state["model"])
        for level, codes in enumerate(encode_all(model.eval(), pixels)):
            levels.setdefault(model.level_name(level), []).append((step, codes))
    yield change_rate(levels)


def _headline(path: Path, run: Run, found: list[Finding]) -> Headline:
    model = run.autoencoder
    height, width = run.size
    raw = model.channels * height * width * model.bits
    numbers = {finding.name: finding.numbers for finding in found}
    kind = str(model.spec()["autoencoder"]).replace("_", " ")
    title = f"{path.resolve().name}: {kind} autoencoder of {run.config.data.source}"
    shape = f"image of {height} x {width} pixels"
    if "reconstructions" not in numbers:
        sentence = f"An {shape} takes {megabytes(raw / 8)} as pixels; there were no images to try."
        stages: dict[str, Any] = {
            f"{what}, {stage}": value
            for stage, figures in run.figures.items()
            for what, value in figures.items()
        }
        told = [(f"{value:.4g}", what.replace("_", " ")) for what, value in stages.items()]
        return Headline(title, sentence, told[:3])
    best = numbers["reconstructions"]["ways"]["all codes"]
    quality = "no error" if best["psnr_db"] is None else f"{best['psnr_db']:.1f} dB"
    bits = best["bits_per_image"]
    if bits is None:
        sentence = f"An {shape} comes back with {quality}; this model has no codes."
        return Headline(
            title, sentence, [(quality, "signal to noise"), (f"{raw}", "bits as pixels")]
        )
    sentence = (
        f"An {shape}, {megabytes(raw / 8)}, becomes {bits:,.0f} bits of codes, "
        f"{raw / bits:.1f} times less, and comes back with {quality}."
    )
    used = numbers["code_distribution"]["used_share"]
    return Headline(
        title,
        sentence,
        [
            (f"{raw / bits:.1f}{TIMES}", "fewer bits than pixels have"),
            (quality, f"signal to noise at {best['bits_per_dim']:.3f} bits/dim of codes"),
            (f"{used:.1%}", "of the codewords are in use"),
        ],
    )
