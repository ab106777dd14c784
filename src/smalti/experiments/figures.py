"""What a table can have drawn; ``drawings`` makes figures of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ByArm:
    """A point an arm, with its spread over seeds.

    Args:
        metric: Which.
    """

    metric: str

    def key(self) -> str:
        """Tells it from the other figures of a table."""
        return self.metric

    def metrics(self) -> set[str]:
        """Those of the table that are drawn."""
        return {self.metric}


@dataclass(frozen=True)
class Against:
    """A point an arm: a metric over another, such as a score over bytes.

    Args:
        metric: Upwards.
        over: Along the axis.
        log: Whether the axis counts factors.
    """

    metric: str
    over: str
    log: bool = False

    def key(self) -> str:
        """Tells it from the other figures of a table."""
        return f"{self.metric}-over-{self.over}"

    def metrics(self) -> set[str]:
        """Those of the table that are drawn."""
        return {self.metric, self.over}


@dataclass(frozen=True)
class OverSteps:
    """A line an arm: how a number goes while models learn, the mean over seeds.

    Args:
        name: Of the number in the courses of results.
        label: What it is called.
        log: Whether the vertical axis counts factors.
    """

    name: str
    label: str
    log: bool = False

    def key(self) -> str:
        """Tells it from the other figures of a table."""
        return f"{self.name}-over-steps"

    def metrics(self) -> set[str]:
        """None: courses are not metrics."""
        return set()


@dataclass(frozen=True)
class PartsOverSteps:
    """Lines of one arm: how the parts of a whole go while it learns, of the first seed.

    Args:
        arm: Which.
        label: What the whole is called.
        names: What each part is called, by its name in the course.
    """

    arm: str
    label: str
    names: Mapping[str, str] = field(default_factory=dict)

    def key(self) -> str:
        """Tells it from the other figures of a table."""
        return "parts-over-steps"

    def metrics(self) -> set[str]:
        """None: courses are not metrics."""
        return set()


Drawn = ByArm | Against | OverSteps | PartsOverSteps
