"""The way through an autoencoder with codes: top to bottom, a quantizer a level."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from smalti.autoencoders.base import Autoencoder, Reconstruction
from smalti.errors import ConfigError, ShapeError, require
from smalti.quantizers.base import Quantized, Quantizer, build
from smalti.quantizers.channels_first import ChannelsFirst

QuantizerSetting = str | Mapping[str, Any] | Quantizer
Quantize = Callable[[int, Tensor], Tensor]
"""Level and vectors ``(batch, height, width, dim)`` in, quantized vectors out."""


class CodedAutoencoder(Autoencoder):
    """An autoencoder of one or more levels; a subclass writes the networks between them.

    The encoder makes a map a level. From the top down, a level's map and what came from the
    levels above become vectors, these are quantized, and the quantized vectors are carried to
    the level below. All levels' quantized vectors are decoded together.
    """

    @abstractmethod
    def maps(self, x: Tensor) -> list[Tensor]:
        """The encoder: a map a level, top first, of the network's input."""

    @abstractmethod
    def approach(self, level: int, features: Tensor, above: Tensor | None) -> Tensor:
        """The vectors ``(batch, height, width, dim)`` that a level quantizes.

        Args:
            level: Which, 0 is the top.
            features: The level's map.
            above: What was carried from the level above; None at the top.
        """

    def carry(self, level: int, vectors: Tensor, above: Tensor | None) -> Tensor:
        """What the level below sees of quantized vectors; only levels above another are asked."""
        # Not abstract: what has one level carries nothing, and need not say so.
        raise NotImplementedError(f"{type(self).__name__} has one level")

    @abstractmethod
    def join(self, vectors: Sequence[Tensor | None]) -> Tensor:
        """The decoder: parameters from all levels' quantized vectors, None where left out."""

    def descend(self, maps: Sequence[Tensor], quantize: Quantize) -> list[Tensor]:
        """The quantized vectors of all levels, top first."""
        vectors: list[Tensor] = []
        above: Tensor | None = None
        for level, features in enumerate(maps):
            vectors.append(quantize(level, self.approach(level, features, above)))
            if level + 1 < len(maps):
                above = self.carry(level, vectors[-1], above)
        return vectors

    def forward(self, pixels: Tensor) -> Reconstruction:
        """Encode, quantize and decode; see :class:`Autoencoder`."""
        levels = self.levels()
        outs: list[Quantized] = []

        def quantize(level: int, vectors: Tensor) -> Tensor:
            outs.append(levels[level](vectors))
            return outs[-1].vectors

        vectors = self.descend(self.maps(self.network_input(pixels)), quantize)
        prefixes = [f"{self.level_name(n)}/" if len(outs) > 1 else "" for n in range(len(outs))]
        return Reconstruction(
            parameters=self.join(vectors),
            codes=tuple(out.codes for out in outs),
            loss=torch.stack([out.loss for out in outs]).sum(),
            metrics={
                prefix + name: value
                for prefix, out in zip(prefixes, outs, strict=True)
                for name, value in out.metrics.items()
            },
        )

    def encode(self, pixels: Tensor) -> tuple[Tensor, ...]:
        """The codes of images, a grid a level, top first; without noise."""
        return tuple(codes for _, codes in self._look(pixels))

    def vectors(self, pixels: Tensor) -> tuple[Tensor, ...]:
        """What each level's quantizer is given, ``(batch, height, width, dim)``, top first."""
        return tuple(vectors for vectors, _ in self._look(pixels))

    def decode(self, codes: Sequence[Tensor | None]) -> Tensor:
        """The likelihood's parameters that codes stand for; None leaves a level out."""
        levels = self.levels()
        listed = isinstance(codes, Sequence)
        require(
            listed and len(codes) == len(levels) and any(grid is not None for grid in codes),
            f"expected {len(levels)} grids of codes, top first, and not all of them None, got "
            f"{[None if grid is None else 'grid' for grid in codes] if listed else codes}",
            ShapeError,
        )
        self._require_one_size(codes)
        dtype = self.weights_dtype()
        return self.join(
            [
                None if grid is None else quantizer.decode(grid).to(dtype)
                for quantizer, grid in zip(levels, codes, strict=True)
            ]
        )

    def bits_per_image(self, height: int, width: int) -> float:
        """The rate when all codes are equally likely; infinite where a level has no codes."""
        levels = zip(self.levels(), self.grids(height, width), strict=True)
        return sum(
            rows * columns * (quantizer.bits_per_vector if quantizer.code_sizes else math.inf)
            for quantizer, (rows, columns) in levels
        )

    @torch.no_grad()
    def _look(self, pixels: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Vectors and codes of all levels, while nothing learns."""
        levels = self.levels()
        seen: list[tuple[Tensor, Tensor]] = []

        def quantize(level: int, vectors: Tensor) -> Tensor:
            codes = levels[level].encode(vectors)
            seen.append((vectors, codes))
            # The bottom's vectors go nowhere, and where there are no codes nothing is rounded.
            if level + 1 == len(levels) or not levels[level].code_sizes:
                return vectors
            return levels[level].decode(codes).to(vectors.dtype)

        self.descend(self.maps(self.network_input(pixels)), quantize)
        return seen

    def _require_one_size(self, codes: Iterable[Tensor | None]) -> None:
        """Grids of one batch of images, whichever of them are there."""
        sizes = set()
        for level, grid in enumerate(codes):
            if grid is None:
                continue
            require(
                isinstance(grid, Tensor) and grid.dim() == 4,
                f"expected codes (batch, height, width, num_codebooks), got "
                f"{tuple(getattr(grid, 'shape', ()))}",
                ShapeError,
            )
            batch, rows, columns, _ = grid.shape
            side = self.stride >> level
            sizes.add((batch, rows * side, columns * side))
        require(
            len(sizes) == 1,
            "expected grids of the same images, got those of (batch, height, width) "
            f"{' and '.join(map(str, sorted(sizes)))}",
            ShapeError,
        )


def fitting_quantizer(setting: QuantizerSetting, dim: int) -> Quantizer:
    """A quantizer for vectors; ``dim`` is filled in where a name or a spec does not say."""
    if isinstance(setting, str):
        setting = {"quantizer": setting}
    if isinstance(setting, Mapping) and "quantizer" in setting:
        kind = setting["quantizer"]
        made = build(setting) if kind == "channels_first" else build({"dim": dim, **setting})
    elif isinstance(setting, Quantizer):
        made = setting
    else:
        raise ConfigError(
            f"expected a quantizer as a name, an object, or a spec with the key 'quantizer', "
            f"got {setting!r}"
        )
    require(
        not isinstance(made, ChannelsFirst),
        "an autoencoder moves the channels itself: give what is inside of channels_first",
    )
    return made


def channels_last(x: Tensor) -> Tensor:
    """A map ``(batch, dim, height, width)`` as vectors ``(batch, height, width, dim)``."""
    return x.permute(0, 2, 3, 1)


def channels_first(x: Tensor) -> Tensor:
    """Vectors ``(batch, height, width, dim)`` as a map ``(batch, dim, height, width)``."""
    return x.permute(0, 3, 1, 2).contiguous()
