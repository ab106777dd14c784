"""What all runs have in common: the directory that is trained into, and the model in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from smalti.artifacts import MANIFEST, TENSORS, as_path
from smalti.errors import ArtifactError, ConfigError, require
from smalti.training import TrainingOutcome

# The part of a run's directory that is needed to use it; the rest is what training left.
FOLDER = "model"


@dataclass(frozen=True)
class RunOutcome:
    """How training a model as a whole ended.

    Args:
        finished: Whether all stages came to their end; False when a signal stopped one.
        stages: How each stage ended that was begun, in order.
        model: The directory of the trained model; None where it is not finished.
        figures: What was measured after the stages.
    """

    finished: bool
    stages: Mapping[str, TrainingOutcome]
    model: Path | None
    figures: Mapping[str, float] = field(default_factory=dict)


@contextmanager
def named(place: str) -> Iterator[None]:
    """Say in which part of the config a setting is wrong."""
    try:
        yield
    except ConfigError as error:
        error.args = (f"{place}: {error}",)
        raise


def free_place(run_directory: str | Path) -> Path:
    """Where to train into; hours of work must not end at a place that can't be written."""
    place = as_path(run_directory)
    model = place / FOLDER
    require(
        not place.exists() or place.is_dir(),
        f"can't train into {place}: it is a file; choose a directory",
        ArtifactError,
    )
    require(
        not model.exists()
        or (model.is_dir() and {path.name for path in model.iterdir()} == {MANIFEST, TENSORS}),
        f"{model} exists and is not a trained model; choose a new directory or remove it",
        ArtifactError,
    )
    return place


def place_of_model(path: str | Path) -> Path:
    """Where the model is: in the directory that was trained into, or in the one named."""
    place = Path(path)
    if (place / MANIFEST).is_file():
        return place
    require(place.is_dir(), f"there is no directory {place}; train a model first", ArtifactError)
    require(
        (place / FOLDER / MANIFEST).is_file(),
        f"{place} holds no trained model; train one into it, or resume its training",
        ArtifactError,
    )
    return place / FOLDER


def fill(module: nn.Module, tensors: Mapping[str, Tensor], file: Path) -> None:
    """Give a module its saved numbers, if they are its own, and ready it for use."""
    expected = {key: tensor.shape for key, tensor in module.state_dict().items()}
    got = {key: tensor.shape for key, tensor in tensors.items()}
    if expected != got:
        wrong = sorted(key for key in expected | got if expected.get(key) != got.get(key))[0]
        raise ArtifactError(
            f"{file} does not fit its settings: expected {wrong} of shape "
            f"{tuple(expected.get(wrong, ()))}, got {tuple(got.get(wrong, ()))}"
        )
    for key, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise ArtifactError(f"{file}: {key} is not finite")
    module.load_state_dict(dict(tensors))
    module.requires_grad_(False).eval()


def weights_digest(module: nn.Module) -> str:
    """The SHA-256 of a module's state, by name."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
