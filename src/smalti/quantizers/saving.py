"""``smalti.save`` and ``smalti.load``: a layer and its directory."""

from __future__ import annotations

from pathlib import Path

import torch

from smalti.artifacts import TENSORS, read_artifact, write_artifact
from smalti.errors import ArtifactError, ConfigError, SmaltiError
from smalti.quantizers.base import Quantizer, build


def save(layer: Quantizer, directory: str | Path, origin: str = "") -> None:
    """Write a quantizer to a directory: its settings, its codebooks, their checksums."""
    if not isinstance(layer, Quantizer):
        raise ConfigError(f"expected a quantizer to save, got {type(layer).__name__}")
    write_artifact(directory, "quantizer", layer.spec(), layer.state_dict(), origin)


def load(directory: str | Path) -> Quantizer:
    """Read a quantizer that :func:`save` wrote, ready for use (in evaluation mode)."""
    artifact = read_artifact(directory, "quantizer")
    try:
        layer = build(artifact.spec)
    except SmaltiError as error:
        raise ArtifactError(f"{directory} can't be built: {error}") from error
    expected = {name: tuple(tensor.shape) for name, tensor in layer.state_dict().items()}
    got = {name: tuple(tensor.shape) for name, tensor in artifact.tensors.items()}
    if expected != got:
        wrong = sorted(name for name in expected | got if expected.get(name) != got.get(name))[0]
        raise ArtifactError(
            f"{Path(directory) / TENSORS} does not fit its settings: expected {wrong} of shape "
            f"{expected.get(wrong)}, got {got.get(wrong)}"
        )
    for name, tensor in artifact.tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise ArtifactError(f"{Path(directory) / TENSORS}: {name} is not finite")
    layer.load_state_dict(artifact.tensors)
    return layer.eval()
