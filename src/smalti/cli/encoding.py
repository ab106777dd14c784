"""``smalti encode``: images become a ``.smt`` file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smalti.cli.options import Threads, use_threads
from smalti.cli.output import AsJson, show, tell


def encode(
    run: Annotated[Path, typer.Argument(help="The directory of a trained image model.")],
    images: Annotated[
        list[str], typer.Argument(help="A known set, a file, a folder, or several pictures.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The .smt file to write.")],
    lossless: Annotated[
        bool,
        typer.Option("--lossless", help="Keep the very pixels, not only what codes stand for."),
    ] = False,
    prior: Annotated[
        str | None,
        typer.Option(help="What codes by: uniform, unigram, autoregressive. The best one."),
    ] = None,
    split: Annotated[str, typer.Option(help="Of a set in parts: train, valid or test.")] = "train",
    size: Annotated[
        int | None, typer.Option(min=1, help="Resize the middle square of each image to it.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many, the first.")] = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Write images to a file by a trained model and the prior of its codes.

    Example: smalti encode runs/digits photo.png -o photo.smt --lossless
    """
    from smalti.codec import CodecModel, encode_images
    from smalti.codec.container import require_place
    from smalti.recipes.images import load_run, read_fitting_images

    use_threads(threads)
    # Minutes of work must not end at a file that can't be written.
    require_place(output)
    trained = load_run(run)
    found = read_fitting_images(trained, images[0] if len(images) == 1 else images, split, size)
    side = trained.config.data.size if size is None else size
    if side is not None:
        tell([f"what is kept are the middle squares of the images, resized to {side} x {side}"])
    model = CodecModel(trained.autoencoder, trained.prior(prior))
    encoded = encode_images(model, found.pixels[:limit], output, lossless=lossless)
    chosen = prior or list(trained.priors)[-1]
    show({**encoded.as_dict(), "lossless": lossless, "prior": chosen}, as_json)
