"""The task of an autoencoder: give images back through codes."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn, optim

from smalti.autoencoders import Autoencoder, gradient_gap
from smalti.data.images import Images, build_augmentation, grid_picture, resized
from smalti.quantizers import follow
from smalti.recipes.images.batching import BLOCK, shuffled
from smalti.recipes.images.config import DataSettings
from smalti.recipes.images.quality import psnr, unit_square_error
from smalti.training import Counted, TrainingSettings

# Images of a picture: pairs of an original and what became of it.
SHOWN, COLUMNS = 32, 8


class AutoencoderTask:
    """Trains an autoencoder on images, from small ones to large ones where that is asked for.

    Args:
        model: What learns.
        train: Images to learn from.
        valid: Images to evaluate with.
        data: How images are varied and how they grow.
        training: Batch size and learning rate.
        watch: How many held-out images the gradient gap is measured with; None for no gap.
    """

    def __init__(
        self,
        model: Autoencoder,
        train: Images,
        valid: Images,
        data: DataSettings,
        training: TrainingSettings,
        watch: int | None = None,
    ) -> None:
        self.model: nn.Module = model
        self.autoencoder, self.valid, self.training = model, valid, training
        self.augmentation = build_augmentation(data.augmentation)
        self.bits = train.bits
        # The last stage has no end.
        self.stages: list[tuple[int, Tensor]] = []
        end = 0
        for growth in data.growing:
            end += growth.steps
            model.grids(growth.size, growth.size)  # Refuses a size that can't be halved so often.
            self.stages.append((end, resized(train, growth.size).pixels))
        model.grids(*train.shape[1:])
        self.full = train.pixels
        self.watch = watch
        if watch is not None:
            # Refuses a model without a gap now, and not after many steps.
            gradient_gap(model, train.pixels[:1])

    def batches(self, epoch: int, generator: torch.Generator) -> Counted[Tensor]:
        """All images in random order, varied."""
        batches = shuffled(len(self.full), self.training.batch_size, generator)
        return Counted(self._batches(batches, epoch, generator), len(batches))

    def _batches(
        self, batches: tuple[Tensor, ...], epoch: int, generator: torch.Generator
    ) -> Iterator[Tensor]:
        for place, rows in enumerate(batches):
            pixels = self._pixels(epoch * len(batches) + place)[rows]
            yield self.augmentation(pixels, generator)

    def _pixels(self, step: int) -> Tensor:
        """The images in the size of that step."""
        return next((pixels for end, pixels in self.stages if step < end), self.full)

    def step(self, batch: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """The likelihood's loss and the quantizers'."""
        out = self.autoencoder(batch)
        loss = self.autoencoder.likelihood.loss(out.parameters, batch)
        return loss + out.loss, {"likelihood_loss": loss.detach(), **out.metrics}

    def optimizer(self) -> optim.Optimizer:
        """Adam, whose steps the codebooks follow."""
        made = optim.Adam(self.model.parameters(), lr=self.training.learning_rate)
        follow(self.model, made)
        return made

    def evaluate(self) -> dict[str, float]:
        """The losses of the held-out images, and how far off their reconstructions are."""
        likelihood, total = self.autoencoder.likelihood, torch.zeros(2, dtype=torch.float64)
        for pixels in self.valid.pixels.to(self._device()).split(BLOCK):
            parameters = self.autoencoder(pixels).parameters
            loss = likelihood.loss(parameters, pixels)
            error = unit_square_error(pixels, likelihood.image(parameters), self.bits).mean()
            total += len(pixels) * torch.tensor([float(loss), float(error)], dtype=torch.float64)
        loss, mse = (total / len(self.valid)).tolist()
        found = {"likelihood_loss": loss, "mse_0_to_1": mse, "psnr_db": psnr(mse)}
        return found if self.watch is None else {**found, **self._watched(self.watch)}

    def _watched(self, images: int) -> dict[str, float]:
        """The gradient gap and the quantizers' own figures, of the first held-out images."""
        pixels = self.valid.pixels[:images].to(self._device())
        metrics = self.autoencoder(pixels).metrics
        with torch.enable_grad():
            gap = gradient_gap(self.autoencoder, pixels)
        figures = {"gradient_gap": gap.size, "relative_gradient_gap": gap.relative}
        return figures | {name: float(value) for name, value in metrics.items()}

    def picture(self) -> Tensor:
        """Rows of held-out images, each above a row of what became of them."""
        pixels = self.valid.pixels[:SHOWN].to(self._device())
        again = self.autoencoder.likelihood.image(self.autoencoder(pixels).parameters)
        columns = min(COLUMNS, len(pixels))
        rows = zip(pixels.split(columns), again.split(columns), strict=True)
        # A last row that is not full would put pairs apart.
        whole = [part for pair in rows if len(pair[0]) == columns for part in pair]
        return grid_picture(torch.cat(whole), columns, bits=self.bits)

    def _device(self) -> torch.device:
        return next(self.model.parameters()).device
