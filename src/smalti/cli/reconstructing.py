"""``smalti reconstruct``: images through codes and back, as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from smalti.cli.options import ImageRun, Images, Limit, Side, Split, Threads, use_threads
from smalti.cli.output import AsJson, show


def reconstruct(
    run: ImageRun,
    images: Images,
    output: Annotated[Path, typer.Option("--output", "-o", help="The directory to write into.")],
    levels: Annotated[
        str | None, typer.Option(help="Decode these levels alone: top, bottom, or 0,2.")
    ] = None,
    split: Split = "train",
    size: Side = None,
    limit: Limit = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Write what becomes of images, a PNG file each, and print how far off they are.

    Files keep the names of the pictures that they come from; images of a set are numbered.

    Example: smalti reconstruct runs/digits photos/ -o again --levels top
    """
    from smalti.data.images import write_images
    from smalti.recipes import images as recipe
    from smalti.recipes.images.quality import psnr, unit_square_error

    use_threads(threads)
    model = recipe.load_run(run)
    chosen = recipe.level_numbers(model, levels)
    source = images[0] if len(images) == 1 else images
    found = recipe.read_fitting_images(model, source, split, size)
    pixels = found.pixels[:limit]
    again = recipe.reconstruct(model, pixels, None if levels is None else chosen)
    names = _file_names(None if found.names is None else found.names[:limit], len(pixels))
    write_images(again, output, names, bits=found.bits)
    mse = float(unit_square_error(pixels, again, found.bits).mean())
    height, width = found.shape[1:]
    content = {
        "directory": str(output),
        "images": len(pixels),
        "levels": list(chosen),
        "mse_0_to_1": mse,
        "psnr_db": psnr(mse) if mse > 0 else None,
        "bits_per_image": recipe.bits_of_levels(model, chosen, height, width),
    }
    show(content, as_json)


def _file_names(names: Sequence[str] | None, count: int) -> list[str]:
    """Names in one folder, all different: without their endings, else with them, else numbers."""
    flat = [name.replace("/", "-") for name in names or ()]
    for choice in ([Path(name).stem for name in flat], flat):
        # Some systems do not tell capitals from small letters.
        if choice and len({name.casefold() for name in choice}) == count:
            return choice
    return [f"{number:05d}" for number in range(count)]
