"""A claim of a paper as something that measurements decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from smalti.experiments.comparisons import Comparison, Labels
from smalti.experiments.sides import Measurements, Outcome

Word = Literal[
    "holds", "holds in part", "does not hold", "can't be tested here", "not measured yet"
]


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper and what decides it.

    Args:
        sentence: What the paper says, in our words.
        decided_by: Comparisons; all must come out, and no seeds overlap, for the claim to hold.
        assumes: What must come out before the others say anything, such as that the compared
            models have learned something.
        why: What explains the verdict, and the paper's slip where there is one.
        untestable: Why it can't be tested here; None where it can.
        only: The scales whose arms it compares; all where empty.
    """

    sentence: str
    decided_by: tuple[Comparison, ...] = ()
    why: str = ""
    untestable: str | None = None
    only: tuple[str, ...] = ()
    assumes: tuple[Comparison, ...] = ()

    def comparisons(self) -> tuple[Comparison, ...]:
        """All, what is assumed first."""
        return (*self.assumes, *self.decided_by)

    def arms(self) -> set[str]:
        """All that are compared."""
        return {name for one in self.comparisons() for name in one.arms()}


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


def judge(
    claim: Claim, found: Measurements, labels: Labels | None = None, *, paired: bool = False
) -> Verdict:
    """The verdict of measurements.

    Args:
        claim: What is judged.
        found: By arm, metric and seed.
        labels: How metrics are called.
        paired: Whether arms are compared seed by seed.
    """
    if claim.untestable is not None:
        return Verdict("can't be tested here", (claim.untestable,))
    seen: list[tuple[Comparison, Outcome]] = []
    for one in claim.comparisons():
        outcome = one.outcome(found, labels or {}, paired=paired)
        if outcome is None:
            lacking = sorted(name for name in one.arms() if one.metric not in found.get(name, {}))
            return Verdict("not measured yet", (f"missing: {'; '.join(lacking)}",))
        seen.append((one, outcome))
    taken = [outcome for _, outcome in seen[: len(claim.assumes)]]
    decisive = seen[len(claim.assumes) :]
    refuted = tuple(
        f"its premise fails here: {outcome.told}" for outcome in taken if not outcome.came_out
    )
    if refuted:
        return Verdict("can't be tested here", refuted, min(outcome.seeds for outcome in taken))
    held: Word = "does not hold"
    if all(outcome.came_out and outcome.clear for _, outcome in decisive):
        held = "holds"
    elif any(outcome.came_out for one, outcome in decisive if not one.condition):
        held = "holds in part"
    return Verdict(
        held,
        tuple(outcome.told for _, outcome in decisive),
        min(outcome.seeds for _, outcome in seen),
    )
