"""Variations of a batch of images that keep every pixel an integer of its source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from smalti.errors import ShapeError, require
from smalti.registry import Registry
from smalti.specs import build_from


class Augmentation(ABC):
    """Varies a batch; all that is random comes from the generator."""

    kind: ClassVar[str]

    @abstractmethod
    def __call__(self, pixels: Tensor, generator: torch.Generator) -> Tensor:
        """Images ``(batch, channels, height, width)``, varied; the input stays as it is."""


augmentations: Registry[Augmentation] = Registry("augmentation")


def build_augmentation(choice: Augmentation | Mapping[str, Any] | str) -> Augmentation:
    """The augmentation that is given, named, or described by ``{"kind": name, ...}``.

    Example:
        >>> build_augmentation("flip-crop")
        FlipCrop(shift=0.125)
    """
    if isinstance(choice, Augmentation):
        return choice
    made: Augmentation = build_from(augmentations, "kind", choice, {})
    return made


@augmentations.register("none")
@dataclass(frozen=True)
class Unchanged(Augmentation):
    """Leaves images as they are."""

    kind: ClassVar[str] = "none"

    def __call__(self, pixels: Tensor, generator: torch.Generator) -> Tensor:
        """The same images."""
        del generator
        return _checked(pixels)


@augmentations.register("flip")
@dataclass(frozen=True)
class Flip(Augmentation):
    """Mirrors half of the images, left to right."""

    kind: ClassVar[str] = "flip"

    def __call__(self, pixels: Tensor, generator: torch.Generator) -> Tensor:
        """Each image as it is or mirrored."""
        mirrored = _drawn(len(_checked(pixels)), 0, 1, pixels, generator).bool()
        return torch.where(mirrored[:, None, None, None], pixels.flip(-1), pixels)


@augmentations.register("flip-crop")
@dataclass(frozen=True)
class FlipCrop(Augmentation):
    """Mirrors half of the images and moves each by a few pixels.

    What comes in at a border is the image mirrored there: black bars would be learned too.

    Args:
        shift: The farthest way to move, as a share of the side: 1/8 is 4 pixels of 32.
    """

    kind: ClassVar[str] = "flip-crop"
    shift: float = 0.125

    def __post_init__(self) -> None:
        require(0 <= self.shift <= 0.5, f"shift must be from 0 to 0.5, got {self.shift}")

    def __call__(self, pixels: Tensor, generator: torch.Generator) -> Tensor:
        """Each image mirrored or not, and moved."""
        count, channels, height, width = _checked(pixels).shape
        mirrored = _drawn(count, 0, 1, pixels, generator).bool()[:, None]
        rows, columns = (self._places(count, side, pixels, generator) for side in (height, width))
        columns = torch.where(mirrored, width - 1 - columns, columns)
        images = torch.arange(count, device=pixels.device)[:, None, None, None]
        colours = torch.arange(channels, device=pixels.device)[:, None, None]
        return pixels[images, colours, rows[:, None, :, None], columns[:, None, None, :]]

    def _places(self, count: int, side: int, pixels: Tensor, generator: torch.Generator) -> Tensor:
        """Where each new row or column comes from ``(count, side)``."""
        most = round(self.shift * side)
        moves = _drawn(count, -most, most, pixels, generator)
        places = torch.arange(side, device=pixels.device) + moves[:, None]
        last = side - 1
        return last - (last - places.abs()).abs()


def _checked(pixels: Tensor) -> Tensor:
    require(
        pixels.ndim == 4 and not pixels.is_floating_point(),
        "expected images (batch, channels, height, width) of whole numbers, "
        f"got {tuple(pixels.shape)} of {pixels.dtype}",
        ShapeError,
    )
    return pixels


def _drawn(count: int, least: int, most: int, pixels: Tensor, generator: torch.Generator) -> Tensor:
    """Random whole numbers ``(count,)``, drawn where the generator is and moved to the images."""
    drawn = torch.randint(least, most + 1, (count,), generator=generator, device=generator.device)
    return drawn.to(pixels.device)
