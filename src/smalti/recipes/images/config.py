"""The settings of an image model: data, autoencoder, priors and how each is trained."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, PositiveInt

from smalti.training import Settings, TrainingSettings


class Growth(Settings):
    """A stage of training with smaller images.

    Args:
        size: Their side.
        steps: How many steps it lasts.
    """

    size: PositiveInt
    steps: PositiveInt


class DataSettings(Settings):
    """The images to train with.

    Args:
        source: What ``read_images`` knows: a name such as ``cifar10``, or a path.
        valid_share: The share that is held out.
        split_seed: Which images are held out; the same for all seeds of training.
        augmentation: ``"none"``, ``"flip"``, ``"flip-crop"``, or a mapping with its ``kind``.
        size: Where given, the middle square of each image is resized to it.
        channels: 3 gives grey images three equal channels.
        growing: Stages with smaller images that come first, one after the other.
    """

    source: str
    valid_share: float = Field(default=0.1, gt=0, lt=1)
    split_seed: int = Field(default=0, ge=0, lt=2**63)
    augmentation: str | dict[str, Any] = "none"
    size: PositiveInt | None = None
    channels: Literal[1, 3] | None = None
    growing: tuple[Growth, ...] = ()


class PriorSettings(Settings):
    """A prior that learns, of one level.

    Args:
        model: Its spec, without what it is to know of the levels.
        labels: What it learns to predict: ``"codes"``, or ``"assignments"``, the averages of
            sampled codes that ``soft_em`` gives.
        training: How it is trained.
    """

    model: dict[str, Any] = Field(default={"prior": "autoregressive"})
    labels: Literal["codes", "assignments"] = "codes"
    training: TrainingSettings


class AutoencoderConfig(Settings):
    """An autoencoder and its priors.

    Args:
        kind: Says that it is one.
        data: The images.
        model: The spec of the autoencoder, without what the images say: channels and bits.
        training: How the autoencoder is trained.
        prior: The prior of each level, or a list with one for each level, top first. Uniform
            and unigram priors are always there; None adds nothing to them.
        watch: With how many held-out images each evaluation also measures the gradient gap and
            the quantizers' own figures, for the journal; None leaves both out.

    Example:
        >>> AutoencoderConfig(
        ...     kind="autoencoder",
        ...     data={"source": "digits"},
        ...     model={"autoencoder": "convolutional"},
        ...     trainig={"steps": 5},
        ...     training={"steps": 5},
        ... )
        Traceback (most recent call last):
        smalti.errors.ConfigError: there is no setting trainig; did you mean training?
    """

    kind: Literal["autoencoder"]
    data: DataSettings
    model: dict[str, Any]
    training: TrainingSettings
    prior: PriorSettings | tuple[PriorSettings, ...] | None = None
    watch: PositiveInt | None = None

    def with_seed(self, seed: int) -> Self:
        """The same, with another seed of everything that is trained."""
        content = self.model_dump()
        parts = [content, *_listed(content["prior"])]
        for part in parts:
            part["training"]["seed"] = seed
        return type(self)(**content)


def _listed(prior: Any) -> list[Any]:
    if prior is None:
        return []
    return [prior] if isinstance(prior, dict) else list(prior)
