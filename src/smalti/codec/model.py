"""What a file is coded with: an autoencoder, a prior of its codes, and their fingerprint."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import nn

from smalti.autoencoders import Autoencoder
from smalti.errors import ConfigError, ShapeError, require
from smalti.priors import LevelsPrior, priors


class ImageModel(Protocol):
    """What :func:`encode_images` needs of a trained run."""

    @property
    def autoencoder(self) -> Autoencoder:
        """Turns images into codes and back."""

    @property
    def prior(self) -> LevelsPrior:
        """Says how likely codes are."""

    def fingerprint(self) -> str:
        """A name that changes with every number that decoding depends on."""


@dataclass(frozen=True, eq=False)
class CodecModel:
    """An autoencoder and a prior that are not in a run.

    Args:
        autoencoder: Turns images into codes and back.
        prior: Of its codes.
    """

    autoencoder: Autoencoder
    prior: LevelsPrior

    def fingerprint(self) -> str:
        """The SHA-256 of all settings and tensors, in hexadecimal."""
        specs = [self.autoencoder.spec(), self.prior.spec()]
        digest = hashlib.sha256(json.dumps(specs, sort_keys=True).encode())
        parts: tuple[nn.Module, ...] = (self.autoencoder, self.prior)
        for part in parts:
            for name, tensor in sorted(part.state_dict().items()):
                digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
                plain = tensor.detach().cpu().contiguous().reshape(-1)
                digest.update(plain.view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()


def prior_names(prior: LevelsPrior) -> list[str]:
    """The registered name of each level's prior, top first."""
    return [priors.name_of(type(member)) for member in prior.members()]


def require_fit(model: ImageModel, height: int, width: int, lossless: bool) -> None:
    """Refuse a prior of other grids, images of another size, and what has no probabilities."""
    autoencoder = model.autoencoder
    require(
        len(autoencoder.quantizers) > 0 and all(autoencoder.code_sizes),
        "this autoencoder has no codes to write; use one with a quantizer that has codes",
    )
    grids = autoencoder.grids(height, width)
    made = list(zip(grids, autoencoder.code_sizes, strict=True))
    known = [(member.level.grid, member.level.code_sizes) for member in model.prior.members()]
    require(
        made == known,
        f"images of {height} x {width} have codes {_shown(made)}, the prior knows {_shown(known)}; "
        "bring the images to the size that the prior was trained on",
        ShapeError,
    )
    require(
        autoencoder.likelihood.exact or not lossless,
        f"lossless files need the probabilities of pixels, which {autoencoder.likelihood} does "
        "not have; train with the likelihood categorical or logistic_mixture",
        ConfigError,
    )


def _shown(levels: list[tuple[tuple[int, int], tuple[int, ...]]]) -> str:
    return ", ".join(f"{rows} x {columns} x {len(sizes)}" for (rows, columns), sizes in levels)
