"""Curves and pictures for TensorBoard, where it is installed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from torch import Tensor

from smalti.errors import ArtifactError
from smalti.training.extras import library

FOLDER = "tensorboard"


class Board:
    """Writes TensorBoard's files.

    Args:
        run: The directory of the run.
        keep_through: TensorBoard forgets what it was told of later steps.
    """

    def __init__(self, run: Path, keep_through: int) -> None:
        tensorboard = library("torch.utils.tensorboard", "TensorBoard needs")
        self.path = run / FOLDER
        self._told_before = threading.excepthook
        threading.excepthook = self._without_disk_errors
        forgotten = keep_through + 1 if keep_through else None
        try:
            self._writer: Any = tensorboard.SummaryWriter(str(self.path), purge_step=forgotten)
        except OSError as error:
            raise ArtifactError(f"can't write {self.path}: {error}") from error

    def write(self, kind: str, step: int, values: Mapping[str, float]) -> None:
        """Add a point to each curve."""
        try:
            for name, value in values.items():
                self._writer.add_scalar(f"{kind}/{name}", value, step)
            self._writer.flush()
        except OSError as error:
            raise ArtifactError(f"can't write {self.path}: {error}") from error

    def picture(self, step: int, picture: Tensor) -> None:
        """Add a picture, uint8 ``(height, width, 3)``."""
        try:
            self._writer.add_image("picture", picture, step, dataformats="HWC")
        except OSError as error:
            raise ArtifactError(f"can't write {self.path}: {error}") from error

    def close(self) -> None:
        """Write what is left, and close."""
        try:
            self._writer.close()
        except OSError as error:
            raise ArtifactError(f"can't write {self.path}: {error}") from error
        finally:
            threading.excepthook = self._told_before

    def _without_disk_errors(self, failure: threading.ExceptHookArgs) -> None:
        """Leave out what TensorBoard's own thread could not write: the next call says it too."""
        own = type(failure.thread).__module__.startswith("tensorboard")
        if not (own and issubclass(failure.exc_type, OSError)):
            self._told_before(failure)


def is_installed() -> bool:
    """Whether TensorBoard is there."""
    return find_spec("tensorboard") is not None
