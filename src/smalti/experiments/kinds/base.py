"""The registry of kinds, and what each of them returns."""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from smalti.registry import Registry


@dataclass(frozen=True)
class Measured:
    """What a run gave.

    Args:
        metrics: Numbers by name; the same seed gives the same.
        details: Plain data for pictures, such as figures over training.
        timings: What took how long, and what follows from it; no two runs agree on that.
    """

    metrics: Mapping[str, float]
    details: Mapping[str, Any] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)


class Kind(ABC):
    """A way from settings to numbers.

    ``together`` says whether several processes can share the work; each then measures, and the
    first writes.
    """

    together: ClassVar[bool] = False

    @abstractmethod
    def measure(self, settings: dict[str, Any], seed: int, place: Path) -> Measured:
        """Train and measure; a run that was interrupted goes on.

        Args:
            settings: Of the run, as nested plain data; may be changed.
            seed: Of everything random.
            place: A folder of its own, in which unfinished work is found again.
        """


def shared_place(place: Path, name: str) -> Path:
    """A folder for what serves several arms and tables; it stays when an arm is done.

    Args:
        place: An arm's own folder: of a table, of a scale.
        name: Of what lies in it.

    Example:
        >>> shared_place(Path("runs/some-table/laptop/some-arm"), "models").as_posix()
        'runs/models'
    """
    return place.parents[2] / name


kinds: Registry[Kind] = Registry("kind of experiment")


def kind_named(name: str) -> Kind:
    """The kind of that name."""
    package = importlib.import_module("smalti.experiments.kinds")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"smalti.experiments.kinds.{module.name}")
    return kinds.get(name)()
