"""``smalti encode``: images become a ``.smt`` file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smalti.cli.options import ImageRun, Images, Limit, Side, Split, Threads, use_threads
from smalti.cli.output import AsJson, show, tell

if TYPE_CHECKING:
    from smalti.codec import Encoded


def encode(
    run: ImageRun,
    images: Images,
    output: Annotated[Path, typer.Option("--output", "-o", help="The .smt file to write.")],
    lossless: Annotated[
        bool,
        typer.Option("--lossless", help="Keep the very pixels, not only what codes stand for."),
    ] = False,
    prior: Annotated[
        str | None,
        typer.Option(help="What codes by: uniform, unigram, autoregressive. The best one."),
    ] = None,
    split: Split = "train",
    size: Side = None,
    limit: Limit = None,
    compare: Annotated[
        bool, typer.Option(help="Say what PNG and WebP take for the same images, without loss.")
    ] = True,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Write images to a file by a trained model and the prior of its codes.

    Without loss, the file is printed beside PNG and WebP files of the same images, which takes
    a while for many; --no-compare leaves that out.

    Example: smalti encode runs/digits photo.png -o photo.smt --lossless
    """
    from smalti.codec import CodecModel, encode_images, other_bytes
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
    model, pixels = CodecModel(trained.autoencoder, trained.prior(prior)), found.pixels[:limit]
    encoded = encode_images(model, pixels, output, lossless=lossless)
    chosen = prior or list(trained.priors)[-1]
    content = {**_figures(encoded, lossless), "lossless": lossless, "prior": chosen}
    if lossless and compare:
        others = other_bytes(pixels, found.bits)
        content |= {f"{name}_bytes": size for name, size in others.items()}
    show(content if as_json else _lines(content), as_json)


def _figures(encoded: Encoded, lossless: bool) -> dict[str, Any]:
    """What there is to say of a file; of one with loss also how much is lost."""
    from smalti.recipes.images.quality import psnr

    figures = encoded.as_dict()
    mse = figures.pop("mse_0_to_1")
    figures["predicted_bits"] = encoded.predicted_bits
    figures["over_prediction_percent"] = 100 * encoded.excess
    if lossless:
        return figures
    return {**figures, "mse_0_to_1": mse, "psnr_db": psnr(mse) if mse > 0 else None}


def _lines(content: dict[str, Any]) -> dict[str, Any]:
    """The figures for people; sizes beside each other."""
    lossless = content["lossless"]
    predicted = content["predicted_bits"]
    per_dim = predicted * content["bits_per_dim"] / (8 * content["bytes"])
    parts = f"{content['predicted_code_bits']:,.0f} of codes"
    if lossless:
        parts += f" (rate) + {content['predicted_pixel_bits']:,.0f} of pixels (distortion)"
    lines = {
        "file": content["file"],
        "images": f"{content['images']:,}, {'the very pixels' if lossless else 'codes alone'}",
        "prior": content["prior"],
        "bytes": f"{content['bytes']:,}",
        "bits/dim": f"{content['bits_per_dim']:.4f}, predicted {per_dim:.4f}",
        "bits/pixel": f"{content['bits_per_pixel']:.4f}",
        "predicted bits": f"{parts} = {predicted:,.0f}",
        "file over prediction": f"{content['over_prediction_percent']:+.3f} %",
    }
    if not lossless:
        mse = content["mse_0_to_1"]
        shown = "infinite" if content["psnr_db"] is None else f"{content['psnr_db']:.2f} dB"
        lines["lost"] = f"MSE {mse:.6f} (0 to 1), PSNR {shown}"
    for name, title in (("png_bytes", "PNG bytes"), ("webp_bytes", "WebP bytes, lossless")):
        if name in content:
            size = content[name]
            lines[title] = (
                "WebP can't hold these images"
                if size is None
                else f"{size:,}, a file an image; this file is {content['bytes'] / size:.3f} of it"
            )
    return lines
