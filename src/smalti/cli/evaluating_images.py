"""``smalti evaluate`` for image models: what a run is, and its figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from smalti.cli.options import use_threads
from smalti.cli.output import AsJson, show
from smalti.errors import ConfigError


def is_image_model(name: str) -> bool:
    """Whether a name is the directory of an image model; the light look comes first."""
    if not Path(name).is_dir():
        return False
    from smalti.artifacts import MANIFEST

    return any((Path(name) / part / MANIFEST).is_file() for part in ("", "model"))


def evaluate_images(
    name: str,
    data: str | None,
    part: str | None,
    size: int | None,
    others: Sequence[Any],
    threads: int | None,
    seed: int,
    as_json: AsJson,
) -> None:
    """Measure an image model and print its figures.

    Args:
        name: Its directory.
        data: The images.
        part: Which of them.
        size: To resize them to.
        others: What was given for models of texts.
        threads: To compute with.
        seed: Of the zero level of mutual information.
        as_json: How to print.
    """
    if any(other is not None for other in others):
        raise ConfigError(f"{name} is an image model; the options for texts do not fit it")
    if data is None:
        raise ConfigError("say on which images: --data SOURCE, a known set, a file or a folder")
    import torch

    from smalti.recipes import images

    use_threads(threads)
    run = images.load_run(name)
    found, which = images.read_unseen_images(run, data, part, size)
    content: dict[str, Any] = {
        "run": name,
        "data": found.source,
        "part": which,
        **images.evaluate_run(run, found, seed).as_dict(),
        "threads": torch.get_num_threads(),
        "seed": seed,
    }
    show(content if as_json else dict(_lines(content)), as_json)


def _lines(content: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The figures for people, a line each; a distortion stands beside its rate."""
    yield "data", f"{content['images']:,} images, {content['data']}, {content['part']}"
    yield "all codes", _quality(content)
    for level, quality in content["alone"].items():
        yield f"{level} alone", _quality(quality)
    for prior, bits in content["bits_per_dim"].items():
        if bits["total"] is None:
            yield f"bits/dim, {prior}", f"rate {bits['rate']:.4f}; no distortion in bits"
        else:
            yield (
                f"bits/dim, {prior}",
                f"{bits['distortion']:.4f} distortion + {bits['rate']:.4f} rate "
                f"= {bits['total']:.4f}",
            )
    for level, codes in content["levels"].items():
        books = codes["codebooks"]
        used = ", ".join(f"{book['in_use']} of {book['size']}" for book in books)
        yield f"{level}, in use", used
        yield (
            f"{level}, entropy in bits",
            ", ".join(
                f"{book['entropy_bits']:.3f} (corrected {book['corrected_entropy_bits']:.3f})"
                for book in books
            ),
        )
        shared = codes["mutual_information_bits"]
        if shared is not None:
            yield (
                f"{level}, shared bits",
                f"{shared['plug_in']:.4f}, zero level {shared['shuffled']:.4f} "
                "(mean of all pairs of codebooks)",
            )


def _quality(figures: dict[str, Any]) -> str:
    psnr = "infinite" if figures["psnr_db"] is None else f"{figures['psnr_db']:.2f} dB"
    mse = figures["mse_0_to_1"]
    return f"MSE {mse:.6f} (0 to 1), PSNR {psnr}, SSIM {figures['ssim']:.4f}"
