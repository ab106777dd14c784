"""The contract that every autoencoder keeps: images in, grids of codes and images out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from smalti.autoencoders.likelihoods.base import Likelihood, build_likelihood
from smalti.errors import ShapeError, require
from smalti.quantizers.base import Quantizer
from smalti.quantizers.settings import count
from smalti.registry import Registry
from smalti.specs import build_from, spec_of

LikelihoodSetting = str | Mapping[str, Any] | Likelihood


class Reconstruction(NamedTuple):
    """What an autoencoder returns, always these four fields."""

    parameters: Tensor
    """``(batch, likelihood.parameters, height, width)``: what the likelihood reads."""
    codes: tuple[Tensor, ...]
    """A grid ``(batch, height, width, num_codebooks)`` a level, top first."""
    loss: Tensor
    """What the bottleneck adds to the likelihood's loss, already weighted."""
    metrics: dict[str, Tensor]
    """Detached scalars; where levels are several, their names begin with the level's."""


class Autoencoder(nn.Module, ABC):
    """Turns images into grids of codes and back.

    Images are whole numbers ``(batch, channels, height, width)``, codes ``(batch, height,
    width, num_codebooks)``. Levels are ordered from the top (coarsest) to the bottom. Any
    image is taken whose sides are divisible by ``stride``. A constructor stores each argument
    under its own name; ``spec`` and ``build_autoencoder`` rely on it.

    Args:
        channels: Of the images.
        bits: Of a subpixel.
        likelihood: A registered name, a spec, or an object.
        quantizers: One a level, top first.
        stride: How many pixels a side of the coarsest grid's positions has.
    """

    example: ClassVar[Mapping[str, Any]] = {}
    """Settings of a small instance, for the contract suite and for listings."""
    quantizers: nn.ModuleList

    def __init__(
        self,
        channels: int,
        bits: int,
        likelihood: LikelihoodSetting,
        quantizers: Sequence[Quantizer],
        stride: int,
    ) -> None:
        super().__init__()
        self.channels = count("channels", channels)
        self.likelihood = _fitting(likelihood, channels, bits)
        self.bits = self.likelihood.bits
        self.quantizers = nn.ModuleList(quantizers)
        self.stride = stride

    @abstractmethod
    def forward(self, pixels: Tensor) -> Reconstruction:
        """Encode, quantize and decode; in training the quantizers also learn."""

    @abstractmethod
    def encode(self, pixels: Tensor) -> tuple[Tensor, ...]:
        """The codes of images, a grid a level, top first; without noise."""

    @abstractmethod
    def decode(self, codes: Sequence[Tensor | None]) -> Tensor:
        """The likelihood's parameters that codes stand for; None leaves a level out."""

    @abstractmethod
    def bits_per_image(self, height: int, width: int) -> float:
        """The rate of an image when all codes are equally likely."""

    def grids(self, height: int, width: int) -> tuple[tuple[int, int], ...]:
        """The height and width of each level's grid of codes, top first."""
        self._require_size(height, width)
        strides = [self.stride >> level for level in range(len(self.quantizers))]
        return tuple((height // stride, width // stride) for stride in strides)

    @property
    def code_sizes(self) -> tuple[tuple[int, ...], ...]:
        """How many codewords each codebook of each level has, top first."""
        return tuple(quantizer.code_sizes for quantizer in self.levels())

    @property
    def stored_sizes(self) -> tuple[tuple[int, ...], ...]:
        """The same of the codebooks that are stored, which codes of a place may take in turn."""
        return self.code_sizes

    def levels(self) -> list[Quantizer]:
        """The quantizers, top first."""
        return [item for item in self.quantizers if isinstance(item, Quantizer)]

    def level_name(self, level: int) -> str:
        """What a level is called in metrics: top, level1, ..., bottom."""
        last = len(self.quantizers) - 1
        return {0: "top", last: "bottom"}.get(level, f"level{level}")

    def spec(self) -> dict[str, Any]:
        """The settings as plain data; ``build_autoencoder`` is the inverse."""
        return spec_of(self, autoencoders, "autoencoder")

    def network_input(self, pixels: Tensor) -> Tensor:
        """Checked pixels as numbers of [-1, 1] in the type of the weights."""
        scaled = self.likelihood.scaled(pixels)
        self._require_size(*pixels.shape[2:])
        return scaled.to(self.weights_dtype())

    def weights_dtype(self) -> torch.dtype:
        """What the network was cast to; quantizers stay in float32."""
        weights = self.named_parameters()
        return next(w.dtype for name, w in weights if not name.startswith("quantizers."))

    def _require_size(self, height: int, width: int) -> None:
        require(
            height > 0 and width > 0 and height % self.stride == 0 and width % self.stride == 0,
            f"expected images whose sides are divisible by {self.stride}, got {height} x {width}; "
            "crop or pad them",
            ShapeError,
        )


autoencoders: Registry[Autoencoder] = Registry("autoencoder")


def build_autoencoder(spec: Mapping[str, Any] | str | Autoencoder, **settings: Any) -> Autoencoder:
    """Make an autoencoder from a spec, or from a registered name and settings.

    Example:
        >>> build_autoencoder("dense_split", width=32, dim=16).grids(32, 32)
        ((8, 8),)
    """
    if isinstance(spec, Autoencoder):
        return spec
    built: Autoencoder = build_from(autoencoders, "autoencoder", spec, settings)
    return built


def _fitting(setting: LikelihoodSetting, channels: int, bits: int) -> Likelihood:
    """The likelihood of images of that kind; its spec need not repeat what they are like."""
    if isinstance(setting, str):
        setting = {"likelihood": setting}
    made = (
        setting
        if isinstance(setting, Likelihood)
        else build_likelihood({"channels": channels, "bits": bits, **setting})
    )
    require(
        made.channels == channels and made.bits == bits,
        f"expected a likelihood of {channels} channels of {bits} bits, got {made}",
    )
    return made
