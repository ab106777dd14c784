"""Images of one size as exact integers, with where they came from; and a split of them in two."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from smalti.errors import ConfigError, DataError, ShapeError, require

# Above so many bits pixels are int32, up to it uint8.
BYTE = 8
MOST_BITS = 16


@dataclass(frozen=True, eq=False)
class Images:
    """Images of one size, never scaled or normalised: a pixel is the integer of its source.

    Args:
        pixels: ``(n, channels, height, width)`` of 0 to ``2**bits - 1``; uint8, or int32 where
            ``bits`` is above 8.
        bits: Of a pixel's channel.
        labels: A class for each image, int64 ``(n,)``; None where there are none.
        source: Where they came from, in words.
        names: What the file of each is called, below the folder that was read; None where images
            do not come from a file each.

    Example:
        >>> images = Images(torch.zeros(5, 3, 32, 32, dtype=torch.uint8))
        >>> len(images), images.shape
        (5, (3, 32, 32))
    """

    pixels: Tensor = field(repr=False)
    bits: int = BYTE
    labels: Tensor | None = field(repr=False, default=None)
    source: str = ""
    names: Sequence[str] | None = field(repr=False, default=None)

    def __post_init__(self) -> None:
        where = f" in {self.source}" if self.source else ""
        require(
            isinstance(self.bits, int) and 1 <= self.bits <= MOST_BITS,
            f"bits must be a whole number from 1 to {MOST_BITS}, got {self.bits!r}",
        )
        number = torch.uint8 if self.bits <= BYTE else torch.int32
        require(
            self.pixels.ndim == 4 and self.pixels.dtype == number,
            f"expected pixels (n, channels, height, width) of {number} for {self.bits} bits, "
            f"got {tuple(self.pixels.shape)} of {self.pixels.dtype}{where}",
            ShapeError,
        )
        if self.bits != BYTE and self.pixels.numel():
            low, high = (int(bound) for bound in self.pixels.aminmax())
            require(
                low >= 0 and high < 2**self.bits,
                f"expected pixels of {self.bits} bits, 0 to {2**self.bits - 1}, "
                f"got {low} to {high}{where}",
                DataError,
            )
        if self.labels is not None:
            require(
                self.labels.dtype == torch.int64 and self.labels.shape == (len(self),),
                f"expected a label of int64 for each of {len(self)} images, "
                f"got {tuple(self.labels.shape)} of {self.labels.dtype}{where}",
                DataError,
            )

        if self.names is not None:
            require(
                len(self.names) == len(self),
                f"expected a name for each of {len(self)} images, got {len(self.names)}{where}",
                DataError,
            )

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of an image."""
        _, channels, height, width = self.pixels.shape
        return channels, height, width

    def select(self, indices: Tensor | Sequence[int]) -> Images:
        """Some of the images, in the given order."""
        places = torch.as_tensor(indices, device=self.pixels.device)
        # An empty list has no type of its own.
        places = places.long() if places.numel() == 0 else places
        require(
            places.ndim == 1 and places.dtype in {torch.int32, torch.int64},
            f"expected places (n,) of whole numbers, got {tuple(places.shape)} of {places.dtype}",
            ShapeError,
        )
        require(
            not places.numel() or (int(places.min()) >= 0 and int(places.max()) < len(self)),
            f"expected places from 0 to {len(self) - 1}, got others: there are {len(self)} images",
            DataError,
        )
        labels = None if self.labels is None else self.labels[places]
        names = None if self.names is None else [self.names[place] for place in places.tolist()]
        return replace(self, pixels=self.pixels[places], labels=labels, names=names)

    def fingerprint(self) -> str:
        """SHA-256 of the shape and the pixels, in hexadecimal."""
        content = self.pixels.detach().cpu().contiguous().numpy()
        digest = hashlib.sha256(str(tuple(self.pixels.shape)).encode())
        digest.update(content.reshape(-1).view("uint8").data)
        return digest.hexdigest()


def split(images: Images, valid_share: float, seed: int) -> tuple[Images, Images]:
    """Images to train with and images to validate with, drawn at random, each in the old order.

    Args:
        images: What is split.
        valid_share: The share to validate with; both parts get at least one image.
        seed: The same seed gives the same parts.
    """
    require(0 < valid_share < 1, f"valid_share must be above 0 and below 1, got {valid_share}")
    if len(images) < 2:
        raise ConfigError(f"expected at least two images to split, got {len(images)}")
    count = min(max(round(valid_share * len(images)), 1), len(images) - 1)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))
    valid, train = order[:count].sort().values, order[count:].sort().values
    return images.select(train), images.select(valid)
