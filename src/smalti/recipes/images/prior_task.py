"""The task of a prior: predict the codes that a frozen autoencoder gives to images."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn, optim

from smalti.autoencoders import Autoencoder, CodedAutoencoder, assignments
from smalti.errors import ConfigError, require
from smalti.priors import Prior
from smalti.recipes.images.batching import BLOCK, shuffled
from smalti.recipes.images.config import PriorSettings
from smalti.training import Counted


class CodeBatch(NamedTuple):
    """What a prior is trained with."""

    codes: tuple[Tensor, ...]
    """Grids of all levels down to the prior's own."""
    pixels: Tensor | None
    """The images, where labels are drawn anew at each step."""


class PriorTask:
    """Trains the prior of one level.

    Args:
        prior: What learns.
        codes: Grids of all levels of the training images, top first.
        valid: Those of the held-out images.
        settings: Labels, batch size, learning rate.
        autoencoder: Draws soft labels, where they are asked for.
        pixels: The training images, for the same.
    """

    def __init__(
        self,
        prior: Prior,
        codes: Sequence[Tensor],
        valid: Sequence[Tensor],
        settings: PriorSettings,
        autoencoder: Autoencoder,
        pixels: Tensor,
    ) -> None:
        self.model: nn.Module = prior
        self.prior, self.training = prior, settings.training
        self.level = len(prior.above)
        self.codes, self.valid = tuple(codes[: self.level + 1]), tuple(valid[: self.level + 1])
        self.soft = settings.labels == "assignments"
        self.autoencoder, self.pixels = autoencoder, pixels

    def batches(self, epoch: int, generator: torch.Generator) -> Counted[CodeBatch]:
        """All grids in random order."""
        del epoch
        batches = shuffled(len(self.codes[0]), self.training.batch_size, generator)
        return Counted(self._batches(batches), len(batches))

    def _batches(self, batches: tuple[Tensor, ...]) -> Iterator[CodeBatch]:
        for rows in batches:
            codes = tuple(grid[rows].long() for grid in self.codes)
            yield CodeBatch(codes, self.pixels[rows] if self.soft else None)

    def step(self, batch: CodeBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Mean nats of a code."""
        labels = None
        if batch.pixels is not None:
            labels = shares_of(self.autoencoder, batch.pixels, self.level)
        *above, own = batch.codes
        loss: Tensor = self.prior(own, above, labels)
        return loss, {"bits_per_code": loss.detach() / math.log(2)}

    def optimizer(self) -> optim.Optimizer:
        """Adam."""
        return optim.Adam(self.model.parameters(), lr=self.training.learning_rate)

    def evaluate(self) -> dict[str, float]:
        """Bits of a held-out code, and those that a uniform prior needs."""
        device = next(self.model.parameters()).device
        total = 0.0
        for first in range(0, len(self.valid[0]), BLOCK):
            *above, own = (grid[first : first + BLOCK].to(device).long() for grid in self.valid)
            total += float(self.prior.nats(own, above).sum())
        level = self.prior.level
        codes = len(self.valid[0]) * level.num_codes
        uniform = sum(math.log2(size) for size in level.code_sizes) / level.num_codebooks
        return {
            "bits_per_code": total / codes / math.log(2),
            "uniform_bits_per_code": uniform,
        }

    def picture(self) -> Tensor | None:
        """Nothing: codes alone can't be looked at."""
        return None


def require_trainable(
    prior: Prior, settings: PriorSettings, autoencoder: Autoencoder, pixels: Tensor
) -> None:
    """Refuse what can't be trained, before the autoencoder takes its time.

    Args:
        prior: Of one level.
        settings: Its settings.
        autoencoder: Trained or not.
        pixels: An image.
    """
    require(
        any(True for _ in prior.parameters()),
        f"{prior.spec()['prior']} has nothing to train; choose a prior that learns, such as "
        "autoregressive, or none: uniform and unigram are always there",
    )
    if settings.labels == "assignments":
        with torch.random.fork_rng(devices=[]):
            shares_of(autoencoder, pixels, len(prior.above))


@torch.no_grad()
def shares_of(autoencoder: Autoencoder, pixels: Tensor, level: int) -> Tensor:
    """The soft labels of a level, drawn anew at each call."""
    model = autoencoder.to(pixels.device).eval()
    shares = assignments(model, pixels)[level] if isinstance(model, CodedAutoencoder) else None
    if shares is None:
        raise ConfigError(
            f"labels 'assignments' are drawn by the quantizer soft_em, and level {level} has "
            "another; use labels 'codes'"
        )
    return shares
