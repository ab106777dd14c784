"""How the learning rate rises and falls: a factor of the optimizer's own rate, step by step."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator
from torch import optim

from smalti.errors import ConfigError
from smalti.training.configuring import Settings


class _Schedule(Settings, ABC):
    """The rate rises in a straight line, and never above the way down that a kind gives.

    Args:
        warm_up: Steps of the rise; below 1, their share of all steps.
        lowest: The share of the rate at which the way down ends.
    """

    warm_up: float = Field(default=0, ge=0)
    lowest: float = Field(default=0, ge=0, le=1)

    def needs_total(self) -> bool:
        """Whether the factor depends on how many steps there are."""
        return 0 < self.warm_up < 1

    def factor(self, step: int, total: int | None) -> float:
        """The factor of the step after ``step`` others, of ``total`` where that is known."""
        if total is None and self.needs_total():
            kind = type(self).__name__.lower()
            raise ConfigError(
                f"the {kind} schedule has to know how many steps there are; give steps "
                "instead of epochs, or give the batches of an epoch a length"
            )
        rise = min(1.0, (step + 1) / self._warm_up_steps(total))
        fall = self._fall(step, total or 0)
        return min(rise, self.lowest + (1 - self.lowest) * fall)

    @abstractmethod
    def _fall(self, step: int, total: int) -> float:
        """The way down, from 1 to 0; ``total`` is 0 where it is not known."""

    def _warm_up_steps(self, total: int | None) -> int:
        share = 0 < self.warm_up < 1 and total is not None
        return max(1, int(self.warm_up * (total or 0) if share else self.warm_up))


class Constant(_Schedule):
    """Stays at the rate after the rise."""

    kind: Literal["constant"] = "constant"

    def _fall(self, step: int, total: int) -> float:
        del step, total
        return 1.0


class Linear(_Schedule):
    """Falls in a straight line over all steps."""

    kind: Literal["linear"] = "linear"

    def needs_total(self) -> bool:
        """Always."""
        return True

    def _fall(self, step: int, total: int) -> float:
        return max(0.0, (total - step) / total)


class Cosine(_Schedule):
    """Falls over all steps along half a wave of the cosine."""

    kind: Literal["cosine"] = "cosine"

    def needs_total(self) -> bool:
        """Always."""
        return True

    def _fall(self, step: int, total: int) -> float:
        return (1 + math.cos(math.pi * min(1.0, step / total))) / 2


class InverseRoot(_Schedule):
    """Falls with the square root of the steps after the rise, as transformers are trained."""

    kind: Literal["inverse_root"] = "inverse_root"
    warm_up: float = Field(default=4000, ge=0)

    def _fall(self, step: int, total: int) -> float:
        return min(1.0, math.sqrt(self._warm_up_steps(total or None) / (step + 1)))


class Stairs(_Schedule):
    """Falls to a share of itself at each of some steps.

    Args:
        warm_up: As above.
        lowest: As above.
        at: The steps.
        share: What is left at each.
    """

    kind: Literal["stairs"] = "stairs"
    at: tuple[int, ...] = Field(min_length=1)
    share: float = Field(default=0.1, gt=0, lt=1)

    @model_validator(mode="after")
    def _check_order(self) -> Stairs:
        if list(self.at) != sorted(set(self.at)) or self.at[0] < 1:
            raise ValueError(f"expected rising steps from 1 on, got {list(self.at)}")
        return self

    def _fall(self, step: int, total: int) -> float:
        del total
        return self.share ** sum(step >= stair for stair in self.at)


def _with_kind(value: Any) -> Any:
    """A schedule by its name alone, or without one."""
    if isinstance(value, Mapping):
        return {"kind": "constant", **value}
    return {"kind": value} if isinstance(value, str) else value


Schedule = Annotated[
    Annotated[Constant | Linear | Cosine | InverseRoot | Stairs, Field(discriminator="kind")],
    BeforeValidator(_with_kind),
]


class ScheduledRates:
    """Sets the learning rates of an optimizer before each of its steps.

    Args:
        optimizer: Its rates now are the highest.
        schedule: Their factor.
    """

    def __init__(self, optimizer: optim.Optimizer, schedule: _Schedule) -> None:
        self.optimizer, self.schedule = optimizer, schedule
        self.highest: Sequence[float] = [float(group["lr"]) for group in optimizer.param_groups]

    def set(self, step: int, total: int | None) -> float:
        """Set the rates of the step after ``step`` others, and return the first of them."""
        factor = self.schedule.factor(step, total)
        for group, highest in zip(self.optimizer.param_groups, self.highest, strict=True):
            group["lr"] = highest * factor
        return self.highest[0] * factor
