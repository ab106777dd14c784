"""``smalti decode``: the images of a ``.smt`` file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smalti.cli.options import Threads, use_threads
from smalti.cli.output import AsJson, show


def decode(
    file: Annotated[Path, typer.Argument(help="A file that smalti encode wrote.")],
    model: Annotated[Path, typer.Option(help="The trained image model that wrote it.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write PNG files into.")
    ],
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Decode a file into pictures, numbered from 0 on.

    Example: smalti decode photo.smt --model runs/digits -o pictures
    """
    from smalti.codec import CodecModel, decode_images, read_info, writer_of
    from smalti.data.images import write_images
    from smalti.recipes.images import load_run

    use_threads(threads)
    header = read_info(file)
    run = load_run(model)
    writer = writer_of(file, [CodecModel(run.autoencoder, prior) for prior in run.priors.values()])
    pixels = decode_images(file, writer)
    names = [f"{number:05d}" for number in range(header.count)]
    write_images(pixels, output, names, bits=header.bits)
    content = {"directory": str(output), "images": header.count, "lossless": header.lossless}
    show(content, as_json)
