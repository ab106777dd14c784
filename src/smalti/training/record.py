"""All that a run tells: its journal, TensorBoard, pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from smalti.training.journal import Journal
from smalti.training.pictures import Pictures
from smalti.training.settings import TrainingSettings
from smalti.training.tensorboard import Board, is_installed


class Record:
    """Writes down what happens in a run.

    Args:
        run: The directory of the run.
        settings: What to write.
        step: From which the run goes on; what was drawn of later steps is forgotten.
        told: See :class:`Journal`.
    """

    def __init__(
        self, run: Path, settings: TrainingSettings, step: int, told: Mapping[str, int]
    ) -> None:
        # First what may be missing, so that nothing is touched when it is.
        self._pictures = None if settings.picture_every is None else Pictures(run)
        wanted = is_installed() if settings.tensorboard is None else settings.tensorboard
        self._board = Board(run, step) if wanted else None
        self._journal = Journal(run, told)

    def figures(
        self, kind: str, step: int, epoch: int, metrics: Mapping[str, float], **more: float
    ) -> None:
        """Write down the metrics of a step and what else there is to say of it."""
        self._journal.write(kind, step, {"epoch": epoch, "metrics": dict(metrics), **more})
        if self._board is not None:
            self._board.write(kind, step, {**metrics, **more})

    def picture(self, step: int, epoch: int, picture: Tensor) -> None:
        """Write a picture."""
        if self._pictures is None:
            return
        path = self._pictures.write(step, picture)
        self._journal.write("picture", step, {"epoch": epoch, "file": path.name})
        if self._board is not None:
            self._board.picture(step, picture)

    def close(self) -> None:
        """Close all files."""
        self._journal.close()
        if self._board is not None:
            self._board.close()
