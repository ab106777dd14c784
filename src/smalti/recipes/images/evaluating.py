"""What an image model is worth: distortion with its rate, and what its codes look like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from smalti.autoencoders import Autoencoder
from smalti.data.images import Images
from smalti.errors import ShapeError, require
from smalti.recipes.images.batching import blocks
from smalti.recipes.images.code_statistics import code_statistics
from smalti.recipes.images.coding import encode_all, has_codes
from smalti.recipes.images.quality import psnr, ssim, unit_square_error
from smalti.recipes.images.rates import BitsPerDim
from smalti.recipes.images.saved_run import Run

# The rate of a model with Gaussian latents has no prior of codes.
GAUSSIAN = "unit_gaussian"


@dataclass(frozen=True)
class Quality:
    """How far reconstructions are from their images, the mean over all of them.

    Args:
        mse_0_to_1: Squared error where black is 0 and white is 1, of rounded pixels.
        psnr_db: The same in decibels; None where nothing is lost.
        ssim: Structural similarity, at most 1.
    """

    mse_0_to_1: float
    psnr_db: float | None
    ssim: float

    def as_dict(self) -> dict[str, float | None]:
        """Plain data."""
        return {"mse_0_to_1": self.mse_0_to_1, "psnr_db": self.psnr_db, "ssim": self.ssim}


@dataclass(frozen=True)
class Evaluation:
    """The figures of a model on images.

    Args:
        images: How many.
        shape: Channels, height and width of each.
        quality: With all codes.
        alone: With the codes of one level alone, by its name; where there are several levels.
        bits_per_dim: By the name of the prior.
        levels: What the codes of each level look like, by its name.
    """

    images: int
    shape: tuple[int, int, int]
    quality: Quality
    alone: dict[str, Quality]
    bits_per_dim: dict[str, BitsPerDim]
    levels: dict[str, dict[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "images": self.images,
            "shape": list(self.shape),
            **self.quality.as_dict(),
            "alone": {name: quality.as_dict() for name, quality in self.alone.items()},
            "bits_per_dim": {name: bits.as_dict() for name, bits in self.bits_per_dim.items()},
            "levels": self.levels,
        }


@torch.no_grad()
def evaluate_run(run: Run, images: Images, seed: int = 0) -> Evaluation:
    """Measure a model on images of the size that it was trained on.

    Args:
        run: The model.
        images: To reconstruct; better none that it has seen.
        seed: Of the shuffled zero level of mutual information.
    """
    model = run.autoencoder
    require(
        images.shape[1:] == run.size,
        f"expected images of {run.size[0]} x {run.size[1]}, as the priors were trained on, got "
        f"{images.shape[1]} x {images.shape[2]}; resize them",
        ShapeError,
    )
    require(len(images) > 0, "expected at least one image, got none", ShapeError)
    sums = _Sums(model)
    codes = encode_all(model, images.pixels) if has_codes(model) else ()
    begin = 0
    for pixels in blocks(images.pixels, "evaluating"):
        sums.add(pixels, [grid[begin : begin + len(pixels)].long() for grid in codes], run)
        begin += len(pixels)
    names = [model.level_name(level) if len(codes) > 1 else "codes" for level in range(len(codes))]
    dims = images.pixels[0].numel()
    nats = sums.nats / len(images) if model.likelihood.exact else None
    return Evaluation(
        images=len(images),
        shape=images.shape,
        quality=sums.quality("all", len(images)),
        alone={name: sums.quality(name, len(images)) for name in (names if len(codes) > 1 else ())},
        bits_per_dim={
            name: BitsPerDim.from_nats(nats, rate / len(images), dims)
            for name, rate in sums.rates.items()
        },
        levels={
            name: code_statistics(grids, sizes, seed, stored)
            for name, grids, sizes, stored in zip(
                names, codes, model.code_sizes, model.stored_sizes, strict=False
            )
        },
    )


class _Sums:
    """What is added up over batches.

    Args:
        model: The autoencoder.
    """

    def __init__(self, model: Autoencoder) -> None:
        self.model = model
        self.nats = 0.0
        self.rates: dict[str, float] = {}
        self.qualities: dict[str, Tensor] = {}

    def add(self, pixels: Tensor, codes: list[Tensor], run: Run) -> None:
        """Add a batch and its codes."""
        if codes:
            parameters = self.model.decode(codes)
        else:
            out = self.model(pixels)
            parameters = out.parameters
            if "kl_nats" in out.metrics:
                self._add_rate(GAUSSIAN, float(out.metrics["kl_nats"]) * len(pixels))
        if self.model.likelihood.exact:
            self.nats += float(self.model.likelihood.nats(parameters, pixels).double().sum())
        self._add_quality("all", parameters, pixels)
        for name, prior in run.priors.items():
            self._add_rate(name, float(prior.nats(codes).sum()))
        if len(codes) > 1:
            for level, own in enumerate(codes):
                alone = [own if number == level else None for number in range(len(codes))]
                self._add_quality(self.model.level_name(level), self.model.decode(alone), pixels)

    def quality(self, name: str, images: int) -> Quality:
        """The means."""
        mse, similarity = (self.qualities[name] / images).tolist()
        return Quality(mse, psnr(mse) if mse > 0 else None, similarity)

    def _add_rate(self, name: str, nats: float) -> None:
        self.rates[name] = self.rates.get(name, 0.0) + nats

    def _add_quality(self, name: str, parameters: Tensor, pixels: Tensor) -> None:
        again = self.model.likelihood.image(parameters)
        figures = torch.stack(
            [measure(pixels, again, self.model.bits).sum() for measure in (unit_square_error, ssim)]
        )
        self.qualities[name] = self.qualities.get(name, torch.zeros_like(figures)) + figures
