"""Checkpoints: all that a run needs to go on, in directories that are whole or not there.

A checkpoint is an artifact (a manifest with checksums, and safetensors) and never pickle. It is
written beside its place and renamed; older ones go only when it stands.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from smalti.artifacts import as_path, read_artifact, write_artifact
from smalti.errors import ArtifactError, require
from smalti.training.trees import flattened, restored

KIND = "checkpoint"
FOLDER = "checkpoints"
NAME = re.compile(r"step-(\d{8,})")
# Where artifacts are drafted; older checkpoints take such a name before they are removed.
DRAFT = ".smalti-"


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds.

    Args:
        path: Its directory.
        step: After how many steps it was written.
        settings: Those that a run that goes on from it must have, too.
        state: Everything else: the model, the optimizer, random states, the place in the data.
    """

    path: Path
    step: int
    settings: Mapping[str, Any]
    state: Mapping[str, Any]


class Checkpoints:
    """The checkpoints of a run.

    Args:
        run: The directory of the run.
        keep: How many of the latest stay.
    """

    def __init__(self, run: str | Path, keep: int = 2) -> None:
        self.folder, self.keep = as_path(run) / FOLDER, keep

    def steps(self) -> list[int]:
        """The steps of all that are there, in order."""
        if not self.folder.is_dir():
            return []
        found = (NAME.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in found if match)

    def path(self, step: int) -> Path:
        """The place of the checkpoint of that step."""
        return self.folder / f"step-{step:08d}"

    def write(self, step: int, settings: Mapping[str, Any], state: Mapping[str, Any]) -> Path:
        """Write a checkpoint, then remove those that are too old."""
        before, place = self.steps(), self.path(step)
        plain, tensors = flattened(state)
        spec = {"step": step, "settings": settings, "state": plain}
        try:
            write_artifact(place, KIND, spec, tensors)
        except ArtifactError as error:
            kept = f"; that of step {before[-1]} is whole" if before else ""
            raise ArtifactError(
                f"can't write the checkpoint of step {step} to {place}: {error}{kept}. Make "
                "room, or choose another directory, and resume"
            ) from error
        for old in sorted({*before, step})[: -self.keep]:
            self._remove(old)
        return place

    def latest(self) -> Checkpoint | None:
        """The checked content of the latest, if there is one."""
        steps = self.steps()
        if not steps:
            return None
        try:
            return self.read(steps[-1])
        except ArtifactError as error:
            older = f"remove it to go on from step {steps[-2]}" if steps[1:] else "start anew"
            raise ArtifactError(f"the latest checkpoint can't be used ({older}): {error}") from None

    def read(self, step: int) -> Checkpoint:
        """The checked content of the checkpoint of that step."""
        path = self.path(step)
        artifact = read_artifact(path, KIND)
        spec = artifact.spec
        require(
            {"step", "settings", "state"} <= spec.keys() and spec["step"] == step,
            f"{path} is not the checkpoint of step {step}",
            ArtifactError,
        )
        state = restored(spec["state"], artifact.tensors)
        return Checkpoint(path, step, spec["settings"], state)

    def tidy(self) -> None:
        """Remove what a killed process has left half written or half removed."""
        if self.folder.is_dir():
            for path in self.folder.glob(f"{DRAFT}*"):
                shutil.rmtree(path, ignore_errors=True)

    def _remove(self, step: int) -> None:
        # First the name: half a directory must not be taken for a checkpoint.
        unnamed = self.folder / f"{DRAFT}{self.path(step).name}"
        try:
            self.path(step).rename(unnamed)
            shutil.rmtree(unnamed)
        except OSError as error:
            raise ArtifactError(f"can't remove {self.path(step)}: {error}") from error


def read_weights(run: str | Path) -> dict[str, Tensor]:
    """The state of the model in the latest checkpoint of a run, for ``load_state_dict``."""
    found = Checkpoints(run).latest()
    require(found is not None, f"{run} has no checkpoint; train it first", ArtifactError)
    weights: dict[str, Tensor] = dict(found.state["model"]) if found else {}
    return weights


def load_model(model: nn.Module, checkpoint: Checkpoint) -> None:
    """Give a model the weights of a checkpoint, if it is the same model."""
    weights = checkpoint.state["model"]
    expected = {name: getattr(value, "shape", None) for name, value in model.state_dict().items()}
    got = {name: getattr(value, "shape", None) for name, value in weights.items()}
    if expected != got:
        wrong = sorted(name for name in expected | got if expected.get(name) != got.get(name))[0]
        raise ArtifactError(
            f"{checkpoint.path} is of another model: expected {wrong} of shape "
            f"{_shape(expected, wrong)}, got {_shape(got, wrong)}"
        )
    model.load_state_dict(weights)


def _shape(shapes: Mapping[str, Any], name: str) -> str:
    return str(tuple(shapes[name] or ())) if name in shapes else "nothing"
