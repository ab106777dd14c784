"""What becomes of images: originals beside what each level of codes gives back?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from smalti.analysis.figures import Layer, Pictures, encoded
from smalti.analysis.finding import Finding
from smalti.data.images.grid import as_bytes
from smalti.recipes.images import bits_of_levels, reconstruct
from smalti.recipes.images.coding import has_codes
from smalti.recipes.images.quality import psnr, unit_square_error
from smalti.recipes.images.saved_run import Run

SHOWN = 16


def reconstructions(run: Run, pixels: Tensor, shown: int = SHOWN) -> Finding:
    """Images through all codes, and through the codes of some levels.

    Args:
        run: A trained image model.
        pixels: Images ``(n, channels, height, width)``; the errors are of all of them.
        shown: How many to show.
    """
    model = run.autoencoder
    ways: dict[str, tuple[int, ...] | None] = {"all codes": None}
    if has_codes(model) and len(model.quantizers) > 1:
        last = len(model.quantizers)
        for level in range(last):
            ways[f"{model.level_name(level)} alone"] = (level,)
        for level in range(1, last - 1):
            ways[f"down to {model.level_name(level)}"] = tuple(range(level + 1))
    layers, numbers = [], {}
    for name, levels in ways.items():
        again = reconstruct(run, pixels, levels)
        numbers[name] = _figures(run, pixels, again, levels)
        layers.append(Layer(name, _note(numbers[name]), _encoded(again[:shown], model.bits)))
    height, width = pixels.shape[2:]
    best = numbers["all codes"]
    return Finding(
        name="reconstructions",
        title="What becomes of images?",
        caption=(
            f"Through all codes, {len(pixels):,} images come back with {_note(best)}"
            + (
                "; "
                + ", ".join(f"{name} with {_note(own)}" for name, own in list(numbers.items())[1:])
                if len(numbers) > 1
                else ""
            )
            + "."
        ),
        numbers={"images": len(pixels), "ways": numbers},
        figures=[
            Pictures(
                title="Originals, and what became of them",
                width=int(width),
                height=int(height),
                originals=_encoded(pixels[:shown], model.bits),
                layers=layers,
            )
        ],
    )


def _figures(
    run: Run, pixels: Tensor, again: Tensor, levels: tuple[int, ...] | None
) -> dict[str, Any]:
    mse = float(unit_square_error(pixels, again, run.autoencoder.bits).mean())
    every = tuple(range(len(run.autoencoder.quantizers)))
    bits = bits_of_levels(run, every if levels is None else levels, *pixels.shape[2:])
    return {
        "mse_0_to_1": mse,
        "psnr_db": psnr(mse) if mse > 0 else None,
        "bits_per_image": bits,
        "bits_per_dim": None if bits is None else bits / pixels[0].numel(),
    }


def _note(figures: Mapping[str, Any]) -> str:
    close = "no error" if figures["psnr_db"] is None else f"{figures['psnr_db']:.1f} dB"
    if figures["bits_per_image"] is None:
        return close
    return f"{close} at {figures['bits_per_image']:,.0f} bits ({figures['bits_per_dim']:.3f}/dim)"


def _encoded(pixels: Tensor, bits: int) -> list[str]:
    made = as_bytes(pixels, bits).permute(0, 2, 3, 1).contiguous()
    return [encoded(picture) for picture in made.numpy()]
