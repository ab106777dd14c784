"""A table of a paper as a declaration: what all arms share, and what each changes."""

from __future__ import annotations

import hashlib
import importlib
import json
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from smalti.errors import ConfigError, require
from smalti.experiments.claims import Claim
from smalti.experiments.figures import Drawn
from smalti.registry import hint

Scale = Literal["tiny", "laptop", "paper"]
# From seconds to days: a test, two cores, the published setting.
SCALES: tuple[Scale, ...] = ("tiny", "laptop", "paper")


@dataclass(frozen=True)
class Metric:
    """A number of an arm that is shown.

    Args:
        name: Under which it is measured.
        label: Above its column, with the unit.
        better: Whether less or more of it is good.
    """

    name: str
    label: str
    better: Literal["lower", "higher", "neither"] = "lower"


@dataclass(frozen=True)
class Arm:
    """A row of a table.

    Args:
        name: What it is called.
        settings: What differs from the base, by dotted key; a value takes its place whole.
        reported: The paper's numbers, by metric.
        only: The scales at which it runs; none for all.
        at: What differs at a scale alone.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    reported: Mapping[str, float] = field(default_factory=dict)
    only: tuple[Scale, ...] = ()
    at: Mapping[Scale, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """Arms that are compared, over seeds, and what they are to settle.

    Args:
        name: What ``smalti reproduce`` takes.
        paper: Its short title.
        where: Table, figure or section of the paper.
        title: What is compared.
        kind: What is trained and measured; see ``smalti.experiments.kinds``.
        base: Settings of all arms, by dotted key.
        arms: The rows.
        metrics: The columns.
        claims: Sentences that the arms decide.
        scales: What a scale changes of the base, by dotted key.
        seeds: How many a scale has; one where nothing is said.
        minutes: What an arm takes at a scale, about.
        unit: What the paper's numbers are measured in, where it is not ours.
        drawn: Its figures.
        paired: Whether arms of one seed share what is left to chance, such as a fine-tuned model
            in which one table after the other is put: then seeds are compared one by one.
        labels: What metrics are called that claims compare and that have no column.
        untestable: Why nothing can be measured here; None where it can.
    """

    name: str
    paper: str
    where: str
    title: str
    kind: str
    arms: tuple[Arm, ...]
    metrics: tuple[Metric, ...]
    base: Mapping[str, Any] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    scales: Mapping[Scale, Mapping[str, Any]] = field(default_factory=dict)
    seeds: Mapping[Scale, int] = field(default_factory=dict)
    minutes: Mapping[Scale, float] = field(default_factory=dict)
    unit: str = ""
    drawn: tuple[Drawn, ...] = ()
    paired: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    untestable: str | None = None

    def arm(self, name: str) -> Arm:
        """The arm of that name."""
        for arm in self.arms:
            if arm.name == name:
                return arm
        known = ", ".join(f"{arm.name!r}" for arm in self.arms)
        like = hint(name, [arm.name for arm in self.arms])
        raise ConfigError(f"{self.name} has no arm {name!r}{like}; it has: {known}")

    def arms_at(self, scale: Scale) -> list[Arm]:
        """Those that run at a scale."""
        return [arm for arm in self.arms if not arm.only or scale in arm.only]

    def claims_at(self, scale: Scale) -> list[Claim]:
        """Those that the arms of a scale decide."""
        return [claim for claim in self.claims if not claim.only or scale in claim.only]

    def seeds_at(self, scale: Scale) -> range:
        """The seeds of a scale."""
        return range(self.seeds.get(scale, 1))

    def settings(self, arm: Arm, scale: Scale) -> dict[str, Any]:
        """All that an arm is run with, as nested plain data."""
        parts = [self.base, self.scales.get(scale, {}), arm.settings, arm.at.get(scale, {})]
        return nested(parts)

    def spec_hash(self, arm: Arm, scale: Scale) -> str:
        """Tells whether a result belongs to this declaration."""
        text = json.dumps([self.kind, self.settings(arm, scale)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def nested(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Dotted keys as nested mappings; later parts have the last word.

    Example:
        >>> nested([{"model.dim": 8, "model.depth": 2}, {"model.dim": 4}])
        {'model': {'dim': 4, 'depth': 2}}
    """
    made: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            *above, last = key.split(".")
            place = made
            for name in above:
                if not isinstance(place.get(name), dict):
                    place[name] = {}
                place = place[name]
            place[last] = _copied(value)
    return made


def _copied(value: Any) -> Any:
    """Plain data that may be changed without changing the declaration."""
    return json.loads(json.dumps(value))


_tables: dict[str, Table] = {}


def declare(table: Table) -> Table:
    """Make a table known by its name."""
    require(table.name not in _tables, f"two tables are called {table.name}")
    names = [arm.name for arm in table.arms]
    require(len(set(names)) == len(names), f"two arms of {table.name} have the same name")
    wanted = {metric for drawn in table.drawn for metric in drawn.metrics()}
    unknown = wanted - {metric.name for metric in table.metrics}
    require(not unknown, f"{table.name} is to draw {sorted(unknown)}, which is no metric of its")
    for claim in table.claims:
        unknown = claim.arms() - set(names)
        require(not unknown, f"a claim of {table.name} names {sorted(unknown)}, which is no arm")
    _tables[table.name] = table
    return table


def known_tables() -> list[Table]:
    """All that are declared, paper by paper."""
    package = importlib.import_module("smalti.experiments.tables")
    for module in sorted(module.name for module in pkgutil.iter_modules(package.__path__)):
        importlib.import_module(f"smalti.experiments.tables.{module}")
    return list(_tables.values())


def table_named(name: str) -> Table:
    """The table of that name."""
    known = {table.name: table for table in known_tables()}
    if name not in known:
        raise ConfigError(
            f"there is no table {name!r}{hint(name, known)}; known: {', '.join(sorted(known))}"
        )
    return known[name]
