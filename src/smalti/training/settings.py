"""The settings of a training run, whatever is trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from smalti.errors import require
from smalti.training.configuring import Settings
from smalti.training.schedules import Constant, Schedule

# What a resumed run may do otherwise than before: how long it goes on and what it writes.
MAY_CHANGE = frozenset(
    {
        "steps",
        "epochs",
        "log_every",
        "evaluate_every",
        "picture_every",
        "checkpoint_every",
        "keep_checkpoints",
        "tensorboard",
        "unused_parameters",
    }
)
_MISSING = object()


class TrainingSettings(Settings):
    """How a task is trained. ``steps`` or ``epochs`` is needed, the rest has defaults.

    Args:
        steps: How many optimizer steps.
        epochs: How often the data is read, in the place of ``steps``.
        batch_size: Examples of an optimizer step, over all processes together. The task
            makes its batches with it.
        learning_rate: The highest. The task makes its optimizer with it.
        schedule: How it rises and falls: ``"constant"``, ``"linear"``, ``"cosine"``,
            ``"inverse_root"``, or a mapping such as
            ``{"kind": "cosine", "warm_up": 500, "lowest": 0.1}``.
        gradient_accumulation: Into how many pieces a process cuts its share of a batch. The
            sum of their gradients is the batch's, with less memory.
        clip_norm: The largest norm of the gradient.
        precision: ``"float32"``, or ``"bf16"`` for what autocast computes in half of the bits.
        seed: Of everything random.
        log_every: Steps from one line of the journal to the next.
        evaluate_every: Steps between evaluations; None for none.
        picture_every: Steps between pictures; None for none.
        checkpoint_every: Steps between checkpoints; None writes one at the end and on SIGTERM.
        keep_checkpoints: How many of the latest stay.
        tensorboard: Whether to write for TensorBoard; None does where it is installed.
        unused_parameters: With several processes: whether a step may leave parameters out.

    Example:
        >>> TrainingSettings(steps=100, schedule="cosine").schedule.factor(50, total=100)
        0.5
    """

    steps: PositiveInt | None = None
    epochs: PositiveInt | None = None
    batch_size: PositiveInt = 64
    learning_rate: PositiveFloat = 1e-3
    schedule: Schedule = Constant()
    gradient_accumulation: PositiveInt = 1
    clip_norm: PositiveFloat | None = None
    precision: Literal["float32", "bf16"] = "float32"
    seed: int = Field(default=0, ge=0, lt=2**63)
    log_every: PositiveInt = 10
    evaluate_every: PositiveInt | None = None
    picture_every: PositiveInt | None = None
    checkpoint_every: PositiveInt | None = 1000
    keep_checkpoints: PositiveInt = 2
    tensorboard: bool | None = None
    unused_parameters: bool = False

    @model_validator(mode="after")
    def _check_length(self) -> Self:
        if (self.steps is None) == (self.epochs is None):
            raise ValueError("give either steps or epochs, to say when training ends")
        return self

    def lasting(self) -> dict[str, Any]:
        """What a resumed run must have in common with the run before, as plain data."""
        return self.model_dump(mode="json", exclude=set(MAY_CHANGE))


def require_same(before: Mapping[str, Any], now: Mapping[str, Any], run: object) -> None:
    """Refuse to resume with other settings, and name those that differ."""
    old, new = dict(_leaves(before)), dict(_leaves(now))
    changed = [
        f"{key} was {_shown(old.get(key, _MISSING))} and is {_shown(new.get(key, _MISSING))}"
        for key in dict.fromkeys([*old, *new])
        if old.get(key, _MISSING) != new.get(key, _MISSING)
    ]
    require(
        not changed,
        f"can't resume {run} with other settings: {'; '.join(changed)}. Take back the change, or "
        "start anew in another directory",
    )


def _leaves(content: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _shown(value: Any) -> str:
    return "not given" if value is _MISSING else repr(value)
