"""New images: codes drawn from a prior, decoded."""

from __future__ import annotations

import torch
from torch import Tensor

from smalti.errors import require
from smalti.progress import progress_bar
from smalti.recipes.images.saved_run import Run

# Images that are drawn together.
TOGETHER = 64


@torch.no_grad()
def sample(
    run: Run,
    count: int,
    *,
    prior: str | None = None,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draw images ``(count, channels, height, width)`` of the size that the model was trained on.

    Args:
        run: The model.
        count: How many.
        prior: Which one draws the codes; None for the best.
        temperature: Below 1 likely codes become likelier; 0 always takes the likeliest.
        generator: Where random numbers come from.
    """
    require(count >= 1, f"expected to draw at least one image, got {count}")
    chosen, model = run.prior(prior), run.autoencoder
    drawn = []
    with progress_bar("sampling", "images", total=count) as advance:
        for begin in range(0, count, TOGETHER):
            few = min(TOGETHER, count - begin)
            codes = chosen.sample(few, generator=generator, temperature=temperature)
            drawn.append(model.likelihood.image(model.decode(codes)))
            advance(few)
    return torch.cat(drawn)
