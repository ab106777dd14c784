"""Images through codes and back, with all levels or some of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from smalti.autoencoders import Autoencoder
from smalti.errors import ConfigError, require
from smalti.recipes.images.batching import blocks
from smalti.recipes.images.coding import code_levels, has_codes
from smalti.recipes.images.saved_run import Run


def reconstruct(run: Run, pixels: Tensor, levels: Sequence[int] | None = None) -> Tensor:
    """What becomes of images.

    Args:
        run: The model.
        pixels: Images ``(n, channels, height, width)`` of whole numbers.
        levels: The numbers of the levels whose codes are decoded, 0 is the top; None for all.
    """
    model = run.autoencoder
    made = [
        model.likelihood.image(decoded(model, block, levels))
        for block in blocks(pixels, "reconstructing")
    ]
    require(bool(made), "expected at least one image to reconstruct, got none")
    return torch.cat(made)


@torch.no_grad()
def decoded(model: Autoencoder, pixels: Tensor, levels: Sequence[int] | None = None) -> Tensor:
    """The likelihood's parameters of images, through the codes of some levels or all."""
    if not has_codes(model):
        require(levels is None, "this model has no levels of codes to choose from")
        parameters: Tensor = model(pixels).parameters
        return parameters
    codes = model.encode(pixels)
    chosen = range(len(codes)) if levels is None else levels
    return model.decode([grid if number in chosen else None for number, grid in enumerate(codes)])


def level_numbers(run: Run, levels: str | None) -> tuple[int, ...]:
    """The numbers of levels that words name: ``top``, ``bottom``, ``0,2``; None for all."""
    last = len(run.autoencoder.quantizers) - 1
    if levels is None:
        return tuple(range(last + 1))
    words = {"top": 0, "bottom": last, **{str(number): number for number in range(last + 1)}}
    chosen = [word.strip() for word in levels.split(",")]
    if not all(word in words for word in chosen):
        raise ConfigError(
            f"expected levels such as top, bottom or 0,{last}; this model has the levels 0 to "
            f"{last}, top first; got {levels!r}"
        )
    return tuple(sorted({words[word] for word in chosen}))


def bits_of_levels(run: Run, levels: Sequence[int], height: int, width: int) -> float | None:
    """The rate of an image when only some levels are sent and all codes are equally likely.

    None where there are no codes.
    """
    grids = code_levels(run.autoencoder, height, width)
    if not grids:
        return None
    per_code = [(math.prod(level.grid), sum(map(math.log2, level.code_sizes))) for level in grids]
    return sum(per_code[level][0] * per_code[level][1] for level in levels)
