"""``smalti sample``: new images from a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smalti.cli.options import ImageRun, Seed, Threads, use_threads
from smalti.cli.output import AsJson, check_file, show


def sample(
    run: ImageRun,
    output: Annotated[Path, typer.Option("--output", "-o", help="The PNG file to write.")],
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many images.")] = 64,
    prior: Annotated[
        str | None,
        typer.Option(help="What draws the codes: uniform, unigram, autoregressive. The best one."),
    ] = None,
    temperature: Annotated[
        float, typer.Option(min=0, help="Below 1 likely codes become likelier.")
    ] = 1.0,
    columns: Annotated[int, typer.Option(min=1, help="Images of a row.")] = 8,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Draw images from a trained model, and write them as one picture.

    Example: smalti sample runs/digits -n 64 -o grid.png
    """
    import torch

    from smalti.data.images import grid_picture, write_picture
    from smalti.errors import ConfigError
    from smalti.recipes import images

    use_threads(threads)
    check_file(output)
    if output.suffix.lower() != ".png":
        raise ConfigError(f"expected a file that ends in .png, got {output}")
    model = images.load_run(run)
    generator = torch.Generator().manual_seed(seed)
    pixels = images.sample(model, count, prior=prior, temperature=temperature, generator=generator)
    write_picture(grid_picture(pixels, columns, bits=model.autoencoder.bits), output)
    content = {
        "file": str(output),
        "images": count,
        "prior": prior or list(model.priors)[-1],
        "temperature": temperature,
        "seed": seed,
    }
    show(content, as_json)
