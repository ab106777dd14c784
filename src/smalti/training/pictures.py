"""Pictures of a run, as PNG files."""

from __future__ import annotations

import io
from pathlib import Path

import torch
from torch import Tensor

from smalti.artifacts import write_file
from smalti.errors import ArtifactError, ShapeError, require
from smalti.training.extras import library

FOLDER = "pictures"


class Pictures:
    """Writes pictures, each whole or not at all.

    Args:
        run: The directory of the run.
    """

    def __init__(self, run: Path) -> None:
        self._images = library("PIL.Image", "Pictures need Pillow, which comes with")
        self.folder = run / FOLDER

    def write(self, step: int, picture: Tensor) -> Path:
        """Write a picture, uint8 ``(height, width, 3)``."""
        require(
            picture.dtype == torch.uint8 and picture.ndim == 3 and picture.shape[2] == 3,
            f"expected a picture, uint8 (height, width, 3), got {picture.dtype} "
            f"{tuple(picture.shape)}",
            ShapeError,
        )
        path = self.folder / f"step-{step:08d}.png"
        content = io.BytesIO()
        self._images.fromarray(picture.cpu().contiguous().numpy()).save(content, format="PNG")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ArtifactError(f"can't write the picture {path}: {error}") from error
        write_file(path, content.getvalue())
        return path
