"""Which images a model is trained on, and which it is judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from smalti.data.images import Images, read_images, split
from smalti.errors import DataError, require
from smalti.recipes.images.config import DataSettings
from smalti.recipes.images.saved_run import Run


@dataclass(frozen=True)
class TrainingImages:
    """The images of a training run.

    Args:
        train: To learn from.
        valid: Held out.
        fingerprint: Of all of them together.
    """

    train: Images
    valid: Images
    fingerprint: str


def read_training_images(settings: DataSettings) -> TrainingImages:
    """Read and split the images that settings name."""
    images = read_images(settings.source, size=settings.size, channels=settings.channels)
    train, valid = split(images, settings.valid_share, settings.split_seed)
    return TrainingImages(train, valid, images.fingerprint())


def read_fitting_images(
    run: Run, source: str | Path | Sequence[str], part: str = "train", size: int | None = None
) -> Images:
    """Images of the kind that a trained model knows.

    Args:
        run: The model.
        source: What ``read_images`` knows.
        part: ``train``, ``valid`` or ``test``.
        size: Where given, the middle square of each image is resized to it; else as in training.
    """
    data, model = run.config.data, run.autoencoder
    side = data.size if size is None else size
    images = read_images(source, part, size=side, channels=data.channels)
    require(
        images.shape[0] == model.channels and images.bits == model.bits,
        f"expected images of {model.channels} channels of {model.bits} bits, as the model was "
        f"trained on, got {images.shape[0]} of {images.bits} bits in {images.source}",
        DataError,
    )
    return images


def read_unseen_images(
    run: Run, source: str | Path, part: str | None = None, size: int | None = None
) -> tuple[Images, str]:
    """Images to judge a trained model by, and a word about which they are.

    Args:
        run: The model.
        source: What ``read_images`` knows.
        part: ``train``, ``valid`` or ``test``. Without it, the source's test part; where it has
            none, all of it, but of the images that the model was trained on only those that
            were held out.
        size: As for :func:`read_fitting_images`.
    """
    if part is not None:
        return read_fitting_images(run, source, part, size), part
    try:
        return read_fitting_images(run, source, "test", size), "test"
    except DataError:
        # No test part; where there is nothing at all, this says so.
        images = read_fitting_images(run, source, size=size)
    if images.fingerprint() != run.fingerprint:
        return images, "all"
    data = run.config.data
    return split(images, data.valid_share, data.split_seed)[1], "held out"
