"""A claim of a paper as something that measurements decide."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Word = Literal[
    "holds", "holds in part", "does not hold", "can't be tested here", "not measured yet"
]

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
        factor: ``less`` must be under so many times ``more``.
    """

    metric: str
    less: str
    more: str
    other_metric: str | None = None
    factor: float = 1.0

    def difference(self, found: Measurements) -> tuple[float, float, str] | None:
        """Both means, and a word on how sure their order is; None where one is missing."""
        small = found.get(self.less, {}).get(self.metric, ())
        large = found.get(self.more, {}).get(self.other_metric or self.metric, ())
        if not small or not large:
            return None
        scaled = [self.factor * value for value in large]
        alone = len(small) == len(large) == 1
        overlap = max(small) >= min(scaled) and max(scaled) >= min(small)
        sure = "one seed" if alone else "seeds overlap" if overlap else ""
        return statistics.mean(small), statistics.mean(scaled), sure


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper and what decides it.

    Args:
        sentence: What the paper says, in our words.
        decided_by: Comparisons; all must come out for the claim to hold.
        why: What explains the verdict, and the paper's slip where there is one.
        untestable: Why it can't be tested here; None where it can.
    """

    sentence: str
    decided_by: tuple[Less, ...] = ()
    why: str = ""
    untestable: str | None = None

    def arms(self) -> set[str]:
        """All that are compared."""
        return {name for one in self.decided_by for name in (one.less, one.more)}


@dataclass(frozen=True)
class Verdict:
    """What measurements say of a claim.

    Args:
        word: How it came out.
        evidence: The comparisons in numbers, or the reason.
    """

    word: Word
    evidence: tuple[str, ...]


def judge(claim: Claim, found: Measurements, labels: Mapping[str, str] | None = None) -> Verdict:
    """The verdict of measurements.

    Args:
        claim: What is judged.
        found: By arm and metric, a number for each seed.
        labels: How metrics are called.
    """
    if claim.untestable is not None:
        return Verdict("can't be tested here", (claim.untestable,))
    evidence, came_out = [], []
    for one in claim.decided_by:
        seen = one.difference(found)
        if seen is None:
            return Verdict("not measured yet", (f"{one.less} or {one.more} is missing",))
        small, large, sure = seen
        came_out.append(small < large)
        sign = "<" if small < large else ">=" if large < small else "="
        evidence.append(_told(one, small, sign, large / one.factor, sure, labels or {}))
    if all(came_out):
        return Verdict("holds", tuple(evidence))
    return Verdict("holds in part" if any(came_out) else "does not hold", tuple(evidence))


def _told(
    one: Less, small: float, sign: str, large: float, sure: str, labels: Mapping[str, str]
) -> str:
    label, other = (
        labels.get(name, name.replace("_", " "))
        for name in (one.metric, one.other_metric or one.metric)
    )
    times = "" if one.factor == 1 else f"{one.factor:g} times "
    if one.less == one.more:
        told = f"{one.less}: {label} {small:.4g} {sign} {times}{other} {large:.4g}"
    elif other != label:
        told = f"{label} of {one.less} {small:.4g} {sign} {times}{other} of {one.more} {large:.4g}"
    else:
        told = f"{label}: {one.less} {small:.4g} {sign} {times}{one.more} {large:.4g}"
    return f"{told}, {sure}" if sure else told
