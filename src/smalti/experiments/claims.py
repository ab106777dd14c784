"""A claim of a paper as something that measurements decide."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Word = Literal[
    "holds", "holds in part", "does not hold", "can't be tested here", "not measured yet"
]

OVERLAP = "seeds overlap"
# Of one arm: a list of measurements, one a seed, for each metric.
Measurements = Mapping[str, Mapping[str, Sequence[float]]]


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
        condition: Whether it only says at what price the rest is asked for: a claim fails with
            it, but a claim of which nothing else comes out does not hold in part.
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

    def difference(self, found: Measurements) -> Difference | None:
        """What came out; None where a side is missing."""
        other = self.other_metric or self.metric
        small = _counted(found, self.less, self.metric, self.less_from)
        large = _counted(found, self.more, other, self.more_from)
        if not small or not large:
            return None
        scaled = [self.factor * value for value in large]
        return Difference(
            statistics.mean(small),
            statistics.mean(scaled),
            overlaps=max(small) >= min(scaled) and max(scaled) >= min(small),
            seeds=(len(small), len(large)),
        )


@dataclass(frozen=True)
class Difference:
    """Both sides of a comparison.

    Args:
        small: The mean of what should be less.
        large: The mean of what should be more, times the factor.
        overlaps: Whether some seeds stand the other way round.
        seeds: How many each side has.
    """

    small: float
    large: float
    overlaps: bool
    seeds: tuple[int, int]

    def sure(self) -> str:
        """A word on how sure the order is."""
        if self.seeds == (1, 1):
            return "one seed"
        words = [OVERLAP] if self.overlaps else []
        if 1 in self.seeds:
            words.append(f"{self.seeds[0]} and {self.seeds[1]} seeds")
        return " of ".join(words)

    def unclear(self) -> bool:
        """Whether seeds overlap; one seed on each side can't."""
        return self.overlaps and self.seeds != (1, 1)


def _counted(found: Measurements, arm: str, metric: str, start: str | None) -> Sequence[float]:
    """The measurements of an arm, or how far they are above the mean of another."""
    own = found.get(arm, {}).get(metric, ())
    if start is None:
        return own
    theirs = found.get(start, {}).get(metric, ())
    return [value - statistics.mean(theirs) for value in own] if theirs else ()


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper and what decides it.

    Args:
        sentence: What the paper says, in our words.
        decided_by: Comparisons; all must come out, and no seeds overlap, for the claim to hold.
        why: What explains the verdict, and the paper's slip where there is one.
        untestable: Why it can't be tested here; None where it can.
        only: The scales whose arms it compares; all where empty.
    """

    sentence: str
    decided_by: tuple[Less, ...] = ()
    why: str = ""
    untestable: str | None = None
    only: tuple[str, ...] = ()

    def arms(self) -> set[str]:
        """All that are compared."""
        return {name for one in self.decided_by for name in one.arms()}


@dataclass(frozen=True)
class Verdict:
    """What measurements say of a claim.

    Args:
        word: How it came out.
        evidence: The comparisons in numbers, or the reason.
        seeds: Of the compared arm that has the fewest; 0 where nothing is compared.
    """

    word: Word
    evidence: tuple[str, ...]
    seeds: int = 0


def judge(claim: Claim, found: Measurements, labels: Mapping[str, str] | None = None) -> Verdict:
    """The verdict of measurements.

    Args:
        claim: What is judged.
        found: By arm and metric, a number for each seed.
        labels: How metrics are called.
    """
    if claim.untestable is not None:
        return Verdict("can't be tested here", (claim.untestable,))
    evidence, came_out, counted, clear, seeds = [], [], [], [], []
    for one in claim.decided_by:
        seen = one.difference(found)
        if seen is None:
            lacking = sorted(name for name in one.arms() if one.metric not in found.get(name, {}))
            return Verdict("not measured yet", (f"missing: {'; '.join(lacking)}",))
        small, large = seen.small, seen.large
        came_out.append(small < large)
        clear.append(not seen.unclear())
        seeds.append(min(seen.seeds))
        if not one.condition:
            counted.append(small < large)
        sign = "<" if small < large else ">=" if large < small else "="
        evidence.append(_told(one, small, sign, large / one.factor, seen.sure(), labels or {}))
    held: Word = "holds in part" if any(counted) else "does not hold"
    if all(came_out) and all(clear):
        held = "holds"
    return Verdict(held, tuple(evidence), min(seeds))


def _told(
    one: Less, small: float, sign: str, large: float, sure: str, labels: Mapping[str, str]
) -> str:
    label, other = (
        labels.get(name, name.replace("_", " "))
        for name in (one.metric, one.other_metric or one.metric)
    )
    times = "" if one.factor == 1 else f"{one.factor:g} times "
    less, more = (
        arm if start is None else f"{arm} over {start}"
        for arm, start in ((one.less, one.less_from), (one.more, one.more_from))
    )
    if less == more:
        told = f"{less}: {label} {small:.4g} {sign} {times}{other} {large:.4g}"
    elif other != label:
        told = f"{label} of {less} {small:.4g} {sign} {times}{other} of {more} {large:.4g}"
    else:
        told = f"{label}: {less} {small:.4g} {sign} {times}{more} {large:.4g}"
    return f"{told}, {sure}" if sure else told
