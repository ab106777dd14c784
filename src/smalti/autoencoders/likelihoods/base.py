"""The contract of likelihoods: what a decoder's numbers say about the pixels of an image."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from smalti.errors import DataError, ShapeError, require
from smalti.quantizers.settings import count
from smalti.registry import Registry
from smalti.specs import build_from, setting_names, spec_of

MOST_BITS = 16
PIXEL_TYPES = (torch.uint8, torch.int16, torch.int32, torch.int64)


class Likelihood(ABC):
    """Reads ``(batch, parameters, height, width)`` as a distribution over images.

    It has settings and no weights. Images are whole numbers ``(batch, channels, height,
    width)`` from 0 to ``2**bits - 1``. A constructor stores each argument under its own
    name; ``spec`` and ``build_likelihood`` rely on it.

    Args:
        channels: Of the images.
        bits: Of a subpixel, which is one channel of one pixel.
    """

    example: ClassVar[Mapping[str, Any]] = {"channels": 3, "bits": 4}
    """Settings of a small instance, for the contract suite and for listings."""
    exact: ClassVar[bool] = True
    """Whether every image has a probability."""

    def __init__(self, channels: int, bits: int = 8) -> None:
        self.channels = count("channels", channels)
        self.bits = count("bits", bits, most=MOST_BITS)

    @property
    @abstractmethod
    def parameters(self) -> int:
        """How many numbers a pixel's position needs."""

    @property
    def values(self) -> int:
        """How many values a subpixel can have."""
        return 1 << self.bits

    def scaled(self, pixels: Tensor) -> Tensor:
        """Pixels as float32 in [-1, 1]: a network's input."""
        return self.checked_pixels(pixels).float() * (2 / (self.values - 1)) - 1

    def loss(self, parameters: Tensor, pixels: Tensor) -> Tensor:
        """What training minimises, a scalar: the mean nats of a subpixel."""
        return self.nats(parameters, pixels).sum() / pixels.numel()

    @abstractmethod
    def nats(self, parameters: Tensor, pixels: Tensor) -> Tensor:
        """Minus the log-probability of each image, ``(batch,)``."""

    @abstractmethod
    def image(self, parameters: Tensor) -> Tensor:
        """The mean image, rounded to pixels."""

    @abstractmethod
    def sample(self, parameters: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Images drawn from the distribution."""

    @abstractmethod
    def probabilities(self, parameters: Tensor, pixels: Tensor, channel: int) -> Tensor:
        """Of each value of one channel, given the channels before it.

        Args:
            parameters: ``(batch, parameters, height, width)``.
            pixels: Images; what they hold in ``channel`` and after it is not read.
            channel: Which one.

        Returns:
            ``(batch, height, width, 2**bits)`` in float64.
        """

    def spec(self) -> dict[str, Any]:
        """The settings as plain data; ``build_likelihood`` is the inverse."""
        return spec_of(self, likelihoods, "likelihood")

    def checked_pixels(self, pixels: Tensor) -> Tensor:
        """``pixels``, or an error that says what is wrong."""
        require(
            isinstance(pixels, Tensor)
            and pixels.dtype in PIXEL_TYPES
            and pixels.dim() == 4
            and pixels.shape[1] == self.channels,
            f"expected pixels as whole numbers (batch, {self.channels}, height, width), got "
            f"{getattr(pixels, 'dtype', type(pixels).__name__)} "
            f"{tuple(getattr(pixels, 'shape', ()))}",
            ShapeError,
        )
        full = pixels.dtype == torch.uint8 and self.bits >= 8
        if not full and pixels.numel() and not torch.compiler.is_compiling():
            low, high = (int(bound) for bound in torch.aminmax(pixels))
            require(
                low >= 0 and high < self.values,
                f"expected pixels of {self.bits} bits in 0..{self.values - 1}, got {low}..{high}",
                DataError,
            )
        return pixels

    def checked_parameters(self, parameters: Tensor, pixels: Tensor | None = None) -> Tensor:
        """``parameters`` in float32 at least, or an error that says what is wrong."""
        shape = "batch", self.parameters, "height", "width"
        if pixels is not None:
            self.checked_pixels(pixels)
            shape = pixels.shape[0], self.parameters, *pixels.shape[2:]
        fits = isinstance(parameters, Tensor) and parameters.dim() == 4
        require(
            fits
            and parameters.is_floating_point()
            and all(
                got == wanted or isinstance(wanted, str)
                for got, wanted in zip(parameters.shape, shape, strict=True)
            ),
            f"expected parameters ({', '.join(map(str, shape))}), got "
            f"{getattr(parameters, 'dtype', type(parameters).__name__)} "
            f"{tuple(getattr(parameters, 'shape', ()))}",
            ShapeError,
        )
        return parameters.to(torch.promote_types(parameters.dtype, torch.float32))

    def checked_channel(self, channel: int) -> int:
        """The number of a channel that exists."""
        return count("channel", channel, least=0, most=self.channels - 1)

    def as_pixels(self, x: Tensor) -> Tensor:
        """Numbers of [-1, 1] as the nearest pixels; what lies beyond is clipped."""
        top = self.values - 1
        rounded = ((x + 1) * (top / 2)).round().clamp(0, top)
        return self.as_whole(rounded)

    def as_whole(self, values: Tensor) -> Tensor:
        """Values in the type that pixels have: uint8, or int32 above 8 bits."""
        return values.to(torch.uint8 if self.bits <= 8 else torch.int32)

    def __repr__(self) -> str:
        settings = ", ".join(f"{k}={getattr(self, k)!r}" for k in setting_names(type(self)))
        return f"{type(self).__name__}({settings})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Likelihood) and self.spec() == other.spec()

    def __hash__(self) -> int:
        return hash(repr(self))


likelihoods: Registry[Likelihood] = Registry("likelihood")


def build_likelihood(spec: Mapping[str, Any] | str | Likelihood, **settings: Any) -> Likelihood:
    """Make a likelihood from a spec, or from a registered name and settings.

    Example:
        >>> build_likelihood("categorical", channels=3).parameters
        768
    """
    if isinstance(spec, Likelihood):
        return spec
    built: Likelihood = build_from(likelihoods, "likelihood", spec, settings)
    return built


def draw(shares: Tensor, generator: torch.Generator | None, dim: int) -> Tensor:
    """One index along ``dim`` for every other place, drawn by ``shares`` that add up to 1."""
    ends = shares.movedim(dim, -1).contiguous().cumsum(-1)
    uniform = torch.rand(
        (*ends.shape[:-1], 1), dtype=ends.dtype, device=ends.device, generator=generator
    )
    # Rounding may leave the last end below 1.
    return torch.searchsorted(ends, uniform, right=True)[..., 0].clamp(max=ends.shape[-1] - 1)
