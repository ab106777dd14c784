"""Two sides of a comparison: numbers by seed, compared seed by seed or all with all."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

# Of one metric of one arm, by seed.
Values = Mapping[int, float]
# By arm and metric.
Measurements = Mapping[str, Mapping[str, Values]]


@dataclass(frozen=True)
class Outcome:
    """What measurements say of a comparison.

    Args:
        came_out: Whether means say so.
        clear: Whether all seeds say what the means say; one seed on each side always does.
        seeds: Of the side that has fewer.
        told: All of it in a line.
    """

    came_out: bool
    clear: bool
    seeds: int
    told: str


@dataclass(frozen=True)
class Sides:
    """Two sides of a comparison.

    Args:
        first: A number a seed.
        second: The same of the other side.
        paired: Whether they belong together seed by seed.
    """

    first: Sequence[float]
    second: Sequence[float]
    paired: bool

    def means(self) -> tuple[float, float]:
        """Of both."""
        return statistics.mean(self.first), statistics.mean(self.second)

    def outcome(
        self,
        came_out: bool,
        says: Callable[[float, float], bool],
        told: str,
        *,
        ordered: bool = False,
    ) -> Outcome:
        """What came out, and whether all seeds agree.

        Args:
            came_out: What the means say.
            says: The same of two seeds.
            told: In a line.
            ordered: Whether one side is said to be above the other: then sides that are not
                paired overlap, and do so where seeds are equal, too.
        """
        ranges = ordered and not self.paired
        if self.paired:
            pairs = list(zip(self.first, self.second, strict=True))
        else:
            pairs = [(one, other) for one in self.first for other in self.second]
        differ = any(
            says(one, other) != came_out or (ranges and one == other) for one, other in pairs
        )
        counts = len(self.first), len(self.second)
        words = []
        if counts != (1, 1) and differ:
            words.append("seeds overlap" if ranges else "seeds differ")
        if counts == (1, 1):
            words.append("one seed")
        elif 1 in counts:
            words.append(f"{counts[0]} and {counts[1]} seeds")
        return Outcome(
            came_out=came_out,
            clear=counts == (1, 1) or not differ,
            seeds=min(counts),
            told=", ".join([told, " of ".join(words)]) if words else told,
        )


def sides(first: Values, second: Values, *, paired: bool) -> Sides | None:
    """Both sides, of the seeds that both have where they are paired; None where one is empty.

    Args:
        first: A side.
        second: The other.
        paired: Whether seeds are compared one by one, where both sides have some in common.
    """
    common = sorted(first.keys() & second.keys())
    if paired and common:
        return Sides([first[seed] for seed in common], [second[seed] for seed in common], True)
    if not first or not second:
        return None
    return Sides(list(first.values()), list(second.values()), False)


def counted(found: Measurements, arm: str, metric: str, start: str | None, paired: bool) -> Values:
    """The measurements of an arm, or how far they are above those of another.

    Args:
        found: What was measured.
        arm: Of which arm.
        metric: Which.
        start: The arm that it is counted from; None where from zero.
        paired: Whether from the same seed, where there is one, or from the mean.
    """
    own = found.get(arm, {}).get(metric, {})
    if start is None:
        return own
    theirs = found.get(start, {}).get(metric, {})
    if not theirs:
        return {}
    mean = statistics.mean(theirs.values())
    return {seed: own[seed] - (theirs.get(seed, mean) if paired else mean) for seed in own}
