"""Comparisons that measurements decide: less than another, about as much, least of all."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from smalti.experiments.sides import Measurements, Outcome, counted, sides

# How metrics are called.
Labels = Mapping[str, str]


class Comparison(Protocol):
    """A part of a claim."""

    @property
    def metric(self) -> str:
        """What is compared."""

    @property
    def condition(self) -> bool:
        """Whether it only says at what price the rest is asked for.

        A claim fails with it, but one of which nothing else comes out does not hold in part.
        """

    def arms(self) -> set[str]:
        """All that are compared."""

    def outcome(
        self, found: Measurements, labels: Labels, *, paired: bool = False
    ) -> Outcome | None:
        """What came out; None where a side is missing.

        Args:
            found: What was measured.
            labels: How metrics are called.
            paired: Whether arms of one seed share what is left to chance: then seeds are compared
                one by one. Metrics of one arm always are.
        """


@dataclass(frozen=True)
class Less:
    """That one arm has less of a metric than another.

    Args:
        metric: Which.
        less: The arm with less.
        more: The arm with more.
        other_metric: Of the second arm; where it is not the same.
        less_from: What the first arm is counted from: then it is what it has more than that one.
        more_from: Likewise for the second.
        factor: ``less`` must be under so many times ``more``.
        condition: See :class:`Comparison`.
    """

    metric: str
    less: str
    more: str
    other_metric: str | None = None
    factor: float = 1.0
    condition: bool = False
    less_from: str | None = None
    more_from: str | None = None

    def arms(self) -> set[str]:
        """All that are compared."""
        named = (self.less, self.more, self.less_from, self.more_from)
        return {name for name in named if name is not None}

    def outcome(
        self, found: Measurements, labels: Labels, *, paired: bool = False
    ) -> Outcome | None:
        """What came out; None where a side is missing."""
        other = self.other_metric or self.metric
        paired = paired or len(self.arms()) == 1
        small = counted(found, self.less, self.metric, self.less_from, paired)
        large = counted(found, self.more, other, self.more_from, paired)
        both = sides(small, {seed: self.factor * large[seed] for seed in large}, paired=paired)
        if both is None:
            return None
        means = both.means()
        return both.outcome(
            means[0] < means[1],
            lambda one, other: one < other,
            self._told(*means, labels),
            ordered=True,
        )

    def _told(self, small: float, scaled: float, labels: Labels) -> str:
        sign = "<" if small < scaled else ">=" if scaled < small else "="
        large = scaled / self.factor
        label, other = (_label(name, labels) for name in (self.metric, self.other_metric))
        times = f"{self.factor:g} times " if self.factor > 1 else ""
        # "Twice one is less than the other" is easier to read than "one is less than 0.5 times".
        our_times = f"{1 / self.factor:.3g} times " if self.factor < 1 else ""
        less, more = (
            arm if start is None else f"{arm} over {start}"
            for arm, start in ((self.less, self.less_from), (self.more, self.more_from))
        )
        one, two = f"{small:.4g} {sign}", f"{large:.4g}"
        if less == more:
            return f"{less}: {our_times}{label} {one} {times}{other or label} {two}"
        if other and other != label:
            return f"{our_times}{label} of {less} {one} {times}{other} of {more} {two}"
        return f"{label}: {our_times}{less} {one} {times}{more} {two}"


@dataclass(frozen=True)
class Near:
    """That two arms have about as much of a metric that is above zero.

    Args:
        metric: Which.
        first: An arm.
        second: Another, or the same with another metric.
        factor: The larger one is under so many times the smaller.
        other_metric: Of the second arm; where it is not the same.
        condition: See :class:`Comparison`.
    """

    metric: str
    first: str
    second: str
    factor: float
    other_metric: str | None = None
    condition: bool = False

    def arms(self) -> set[str]:
        """Both."""
        return {self.first, self.second}

    def outcome(
        self, found: Measurements, labels: Labels, *, paired: bool = False
    ) -> Outcome | None:
        """What came out; None where a side is missing."""
        other = self.other_metric or self.metric
        paired = paired or self.first == self.second
        first = counted(found, self.first, self.metric, None, paired)
        both = sides(first, counted(found, self.second, other, None, paired), paired=paired)
        if both is None:
            return None
        means = both.means()
        came_out = self._near(*means)
        label, others = _label(self.metric, labels), _label(other, labels)
        if self.first == self.second:
            head, one, two = self.first, label, others
        else:
            head, one, two = label, self.first, self.second
        within = f"{'within' if came_out else 'not within'} a factor of {self.factor:g} of"
        told = f"{head}: {one} {means[0]:.4g} {within} {two} {means[1]:.4g}"
        return both.outcome(came_out, self._near, told)

    def _near(self, one: float, other: float) -> bool:
        return max(one, other) < self.factor * min(one, other)


@dataclass(frozen=True)
class Least:
    """That an arm has less of a metric than all others: less than the one that comes closest.

    Args:
        metric: Which.
        arm: The arm with the least.
        others: All that it is compared with.
        condition: See :class:`Comparison`.
    """

    metric: str
    arm: str
    others: tuple[str, ...]
    condition: bool = False

    def arms(self) -> set[str]:
        """All that are compared."""
        return {self.arm, *self.others}

    def outcome(
        self, found: Measurements, labels: Labels, *, paired: bool = False
    ) -> Outcome | None:
        """What came out; None where an arm is missing."""
        theirs = {other: found.get(other, {}).get(self.metric, {}) for other in self.others}
        if not all(theirs.values()):
            return None
        closest = min(theirs, key=lambda other: statistics.mean(theirs[other].values()))
        return Less(self.metric, self.arm, closest).outcome(found, labels, paired=paired)


@dataclass(frozen=True)
class Greatest:
    """That an arm has more of a metric than of some others: more than of the largest of them.

    Args:
        metric: Of which it has the most.
        arm: Which arm.
        others: Metrics of the same kind, such as shares of a whole.
        condition: See :class:`Comparison`.
    """

    metric: str
    arm: str
    others: tuple[str, ...]
    condition: bool = False

    def arms(self) -> set[str]:
        """The one."""
        return {self.arm}

    def outcome(
        self, found: Measurements, labels: Labels, *, paired: bool = False
    ) -> Outcome | None:
        """What came out; None where a metric is missing."""
        own = {other: found.get(self.arm, {}).get(other, {}) for other in self.others}
        if not all(own.values()):
            return None
        largest = max(own, key=lambda other: statistics.mean(own[other].values()))
        compared = Less(largest, self.arm, self.arm, other_metric=self.metric)
        return compared.outcome(found, labels, paired=paired)


@dataclass(frozen=True)
class Between:
    """That an arm has a metric between two numbers.

    Args:
        metric: Which.
        arm: Which arm.
        least: What it must be above.
        most: What it must be below.
        condition: See :class:`Comparison`.
    """

    metric: str
    arm: str
    least: float = -math.inf
    most: float = math.inf
    condition: bool = False

    def arms(self) -> set[str]:
        """The one."""
        return {self.arm}

    def outcome(
        self, found: Measurements, labels: Labels, *, paired: bool = False
    ) -> Outcome | None:
        """What came out; None where the arm is missing."""
        del paired  # There is one arm.
        own = found.get(self.arm, {}).get(self.metric, {})
        both = sides(own, own, paired=True)
        if both is None:
            return None
        mean, _ = both.means()
        came_out = self._between(mean)
        limits = [f"above {self.least:g}"] if self.least > -math.inf else []
        limits += [f"below {self.most:g}"] if self.most < math.inf else []
        told = f"{_label(self.metric, labels)}: {self.arm} {mean:.4g}"
        told = f"{told}, {'' if came_out else 'not '}{' and '.join(limits)}"
        return both.outcome(came_out, lambda one, _: self._between(one), told)

    def _between(self, value: float) -> bool:
        return self.least < value < self.most


def _label(metric: str | None, labels: Labels) -> str:
    return "" if metric is None else labels.get(metric, metric.replace("_", " "))
