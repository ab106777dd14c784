"""Verdicts follow from measurements alone."""

from __future__ import annotations

import pytest

from smalti.experiments import Between, Claim, Greatest, Least, Less, Near, judge
from smalti.experiments.comparisons import Comparison

FOUND = {
    "a": {"error": {0: 1.0, 1: 2.0}, "rate": {0: 5.0}},
    "b": {"error": {0: 3.0, 1: 4.0}, "rate": {0: 4.0}},
    "c": {"error": {0: 1.9, 1: 2.1}},
    "d": {
        "left": {0: 0.1, 1: 0.2},
        "middle": {0: 0.3, 1: 0.5},
        "right": {0: 0.6, 1: 0.3},
    },
}


@pytest.mark.parametrize(
    ("comparisons", "word"),
    [
        ((Less("error", "a", "b"),), "holds"),
        ((Less("error", "b", "a"),), "does not hold"),
        ((Less("error", "a", "b"), Less("rate", "a", "b")), "holds in part"),
        ((Less("error", "a", "nobody"),), "not measured yet"),
        # By hand: 3.5 is not under half of 1.5; 1 and 2 are under six tenths of 3.5, and of 4,
        # but 2 is not under six tenths of 3; all are under nine tenths.
        ((Less("error", "b", "a", factor=0.5),), "does not hold"),
        ((Less("error", "a", "b", factor=0.6),), "holds in part"),
        ((Less("error", "a", "b", factor=0.9),), "holds"),
        # Their means are in order, but not all seeds.
        ((Less("error", "a", "c"),), "holds in part"),
        # What only says at what price is no part of what is claimed.
        ((Less("error", "b", "a"), Less("rate", "b", "a", condition=True)), "does not hold"),
        ((Less("error", "a", "b"), Less("rate", "a", "b", condition=True)), "holds in part"),
        # 1.5 of errors against 5 of rate.
        ((Less("error", "a", "a", other_metric="rate"),), "holds"),
    ],
)
def test_a_verdict_is_what_the_means_say(comparisons: tuple[Less, ...], word: str) -> None:
    assert judge(Claim("a is better", comparisons), FOUND).word == word


@pytest.mark.parametrize(
    ("comparison", "word", "line"),
    [
        # By hand: 2 over 1.5 is 1.33; of the seeds 2.1 is over 1.4 times 1 away.
        (
            Near("error", "a", "c", 1.4),
            "holds in part",
            "a 1.5 within a factor of 1.4 of c 2, seeds differ",
        ),
        (Near("error", "a", "c", 2.2), "holds", "a 1.5 within a factor of 2.2 of c 2"),
        (Near("error", "c", "a", 1.3), "does not hold", "c 2 not within a factor of 1.3 of a 1.5"),
        (Near("rate", "a", "b", 1.3), "holds", "a 5 within a factor of 1.3 of b 4, one seed"),
        (
            Near("right", "d", "d", 1.5, other_metric="middle"),
            "holds in part",
            "d: right 0.45 within a factor of 1.5 of middle 0.4, seeds differ",
        ),
        # The closest of the others decides: c, whose mean is 2.
        (Least("error", "a", ("b", "c")), "holds in part", "a 1.5 < c 2, seeds overlap"),
        (Least("error", "c", ("a", "b")), "does not hold", "c 2 >= a 1.5"),
        # 0.45 on the right against 0.4 in the middle, but seeds overlap.
        (Greatest("right", "d", ("left", "middle")), "holds in part", "d: middle 0.4 < right 0.45"),
        (
            Greatest("middle", "d", ("left", "right")),
            "does not hold",
            "d: right 0.45 >= middle 0.4",
        ),
        (Between("error", "b", least=2.5), "holds", "b 3.5, above 2.5"),
        (Between("error", "b", most=3.6), "holds in part", "b 3.5, below 3.6, seeds differ"),
        (Between("error", "b", 1, 2), "does not hold", "b 3.5, not above 1 and below 2"),
        (Between("rate", "b", least=3), "holds", "b 4, above 3, one seed"),
    ],
)
def test_comparisons_of_other_kinds(comparison: Comparison, word: str, line: str) -> None:
    verdict = judge(Claim("", (comparison,)), FOUND)
    assert verdict.word == word
    assert line in verdict.evidence[0]


@pytest.mark.parametrize(
    "comparison",
    [
        Near("error", "a", "nobody", 2.0),
        Least("error", "a", ("b", "nobody")),
        Greatest("right", "d", ("left", "nothing")),
        Between("nothing", "a", least=1),
    ],
)
def test_what_is_missing_is_not_measured_yet(comparison: Comparison) -> None:
    assert judge(Claim("", (comparison,)), FOUND).word == "not measured yet"


def test_a_claim_whose_premise_fails_cannot_be_tested() -> None:
    alive = Less("error", "b", "a")
    verdict = judge(Claim("", (Less("rate", "b", "a"),), assumes=(alive,)), FOUND)
    assert verdict.word == "can't be tested here"
    assert verdict.evidence == ("its premise fails here: error: b 3.5 >= a 1.5",)
    assert judge(
        Claim("", (Less("rate", "b", "a"),), assumes=(Less("error", "a", "b"),)), FOUND
    ) == (judge(Claim("", (Less("rate", "b", "a"),)), FOUND))


@pytest.mark.parametrize(
    ("comparison", "apart", "together"),
    [
        # 1 and 2 against 1.9 and 2.1: they overlap, but each seed has less.
        (Less("error", "a", "c"), "holds in part", "holds"),
        # 1.9 is not under 1.5 times 1, and 2.1 is under 1.5 times 2.
        (Near("error", "a", "c", 1.5), "holds in part", "holds in part"),
        (Least("error", "a", ("b", "c")), "holds in part", "holds"),
        # From the mean of c, or from the same seed of it.
        (Less("error", "a", "b", less_from="c", more_from="c"), "holds", "holds"),
    ],
)
def test_paired_seeds_are_compared_one_by_one(
    comparison: Comparison, apart: str, together: str
) -> None:
    claim = Claim("", (comparison,))
    assert judge(claim, FOUND).word == apart
    assert judge(claim, FOUND, paired=True).word == together


def test_paired_arms_are_compared_in_the_seeds_that_both_have() -> None:
    found = {"x": {"m": {0: 1.0, 1: 5.0}}, "y": {"m": {1: 6.0, 2: 0.0}}}
    (line,) = judge(Claim("", (Less("m", "x", "y"),)), found, paired=True).evidence
    assert line == "m: x 5 < y 6, one seed"


def test_evidence_says_when_seeds_overlap() -> None:
    apart = judge(Claim("", (Less("error", "a", "b"),)), FOUND).evidence
    overlapping = judge(Claim("", (Less("error", "a", "c"),)), FOUND).evidence
    assert "overlap" not in apart[0]
    assert "overlap" in overlapping[0]


def test_evidence_of_one_seed_says_so() -> None:
    (line,) = judge(Claim("", (Less("rate", "b", "a"),)), FOUND).evidence
    assert line.endswith("one seed")


def test_evidence_of_one_seed_on_one_side_says_so() -> None:
    (line,) = judge(Claim("", (Less("error", "a", "b", other_metric="rate"),)), FOUND).evidence
    assert line.endswith("2 and 1 seeds")


@pytest.mark.parametrize(
    ("comparisons", "seeds"),
    [
        ((Less("error", "a", "b"),), 2),
        ((Less("error", "a", "b"), Less("rate", "b", "a")), 1),
        ((Less("error", "a", "b", other_metric="rate"),), 1),
        ((Less("error", "a", "nobody"),), 0),
    ],
)
def test_a_verdict_counts_the_seeds_of_the_arm_with_the_fewest(
    comparisons: tuple[Less, ...], seeds: int
) -> None:
    assert judge(Claim("", comparisons), FOUND).seeds == seeds


def test_what_cannot_be_tested_gives_its_reason() -> None:
    verdict = judge(Claim("faster on a GPU", untestable="there is no GPU"), FOUND)
    assert (verdict.word, verdict.evidence) == ("can't be tested here", ("there is no GPU",))


@pytest.mark.parametrize(
    ("comparison", "line"),
    [
        (Less("error", "a", "b"), "error: a 1.5 < b 3.5"),
        (Less("error", "b", "a", factor=0.5), "error: 2 times b 3.5 >= a 1.5"),
        # Metrics of one arm are compared in the seeds that have both.
        (Less("error", "a", "a", other_metric="rate"), "a: error 1 < bits 5, one seed"),
        (
            Less("error", "a", "b", other_metric="rate"),
            "error of a 1.5 < bits of b 4, 2 and 1 seeds",
        ),
        # 0.5 below the third, and 1.5 above it.
        (
            Less("error", "a", "b", less_from="c", more_from="c"),
            "error: a over c -0.5 < b over c 1.5",
        ),
    ],
)
def test_evidence_names_what_is_compared(comparison: Less, line: str) -> None:
    assert judge(Claim("", (comparison,)), FOUND, {"rate": "bits"}).evidence == (line,)
