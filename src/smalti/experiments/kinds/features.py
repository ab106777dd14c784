"""Quantizers fitted to the features of a network that does not change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from pydantic import PositiveInt
from torch import Tensor

from smalti.codes import Usage
from smalti.experiments.features import FeatureSettings, feature_grids
from smalti.experiments.kinds.base import Kind, Measured, kinds
from smalti.quantizers import Depthwise, Quantizer, build
from smalti.recipes.images.code_statistics import code_statistics
from smalti.training import Settings, as_settings

# Maps at a time when nothing is learned.
BLOCK = 256
# Points of the error over fitting.
POINTS = 20


class FittingSettings(Settings):
    """What is fitted to what.

    Args:
        features: Whose.
        quantizer: Its spec, without the width; one that learns by moving averages.
        steps: How many batches it sees.
        batch_size: Maps of a batch.
    """

    features: FeatureSettings
    quantizer: dict[str, Any]
    steps: PositiveInt
    batch_size: PositiveInt = 32


@kinds.register("features")
class Features(Kind):
    """Settings are those of ``FittingSettings``."""

    def measure(self, settings: dict[str, Any], seed: int, place: Path) -> Measured:
        """Fit to the maps of some images, measure with those of others."""
        del place  # A run takes a minute; there is nothing to go on with.
        chosen = as_settings(FittingSettings, settings)
        train, test = feature_grids(chosen.features)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            quantizer = build({"dim": train.shape[-1], **chosen.quantizer})
            errors = _fit(quantizer, train, chosen)
        quantizer.eval()
        codes = torch.cat([quantizer.encode(maps) for maps in test.split(BLOCK)])
        found = code_statistics(codes, quantizer.code_sizes, seed)
        metrics = {
            "relative_error": _relative_error(quantizer, test, codes, train.mean(dim=(0, 1, 2))),
            "entropy_bits": found["entropy_at_a_place_bits"]["corrected"],
            "used_share": _used_share(quantizer, codes),
            "place_bits": quantizer.bits_per_vector,
        }
        shared = found["mutual_information_bits"]
        # Where a codebook serves a row, the parts of a vector are not codes of two codebooks.
        if shared is not None and not _by_rows(quantizer):
            metrics["shared_bits"] = shared["corrected"]
        return Measured(metrics, {"fitting_errors": errors, "codes": found})


@torch.no_grad()
def _fit(quantizer: Quantizer, train: Tensor, chosen: FittingSettings) -> list[float]:
    """Show maps in random order; the squared errors of some batches on the way."""
    quantizer.train()
    errors, every = [], max(1, chosen.steps // POINTS)
    for step in range(chosen.steps):
        rows = torch.randint(len(train), (min(chosen.batch_size, len(train)),))
        out = quantizer(train[rows])
        if (step + 1) % every == 0:
            errors.append(float(out.metrics["distortion"]))
    return errors


@torch.no_grad()
def _relative_error(quantizer: Quantizer, test: Tensor, codes: Tensor, mean: Tensor) -> float:
    """The squared error as a share of what one vector for all would leave."""
    error = spread = 0.0
    for maps, own in zip(test.split(BLOCK), codes.split(BLOCK), strict=True):
        error += float((maps - quantizer.decode(own)).double().square().sum())
        spread += float((maps - mean).double().square().sum())
    return error / spread


def _by_rows(quantizer: Quantizer) -> bool:
    return isinstance(quantizer, Depthwise) and quantizer.axis == "pixel"


def _used_share(quantizer: Quantizer, codes: Tensor) -> float:
    """Of all codewords; a codebook serves a segment of the channels, or a row."""
    if _by_rows(quantizer):
        books = quantizer.num_codebooks
        codes = codes.unflatten(1, (books, -1)).movedim(1, -1)
    usage = Usage(quantizer.code_sizes)
    usage.update(codes)
    return usage.used_share
