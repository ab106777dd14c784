"""What a study found: the figures of all arms and seeds, and which arm is best at what rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from smalti.recipes.images.codebook_balance.arms import Arm, Pair

# Rates that differ by less are called the same.
SAME_BITS = 0.005


@dataclass(frozen=True)
class ArmFigures:
    """What was measured of one arm.

    Args:
        arm: Which.
        seeds: The figures of each seed.
        history: What each seed's journal says, an entry an evaluation: step, gradient gap, and
            the shares of a pool's codebooks.
    """

    arm: Arm
    seeds: Mapping[int, Mapping[str, Any]]
    history: Mapping[int, Sequence[Mapping[str, Any]]]

    def mean(self, figure: str) -> float:
        """Over the seeds; infinite where nothing is lost and PSNR has no number."""
        values = [figures[figure] for figures in self.seeds.values()]
        return float("inf") if None in values else mean(values)

    def spread(self, figure: str) -> float | None:
        """The standard deviation over seeds; None where there is one seed."""
        values = [figures[figure] for figures in self.seeds.values()]
        return None if len(values) < 2 or None in values else stdev(values)

    def mean_history(self) -> list[dict[str, Any]]:
        """The means over seeds, at each step that was looked at."""
        return [_mean_entry(entries) for entries in zip(*self.history.values(), strict=True)]

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        figures = list(self.seeds.values())
        single = [
            name
            for name in figures[0]
            if all(isinstance(one[name], (int, float)) for one in figures)
        ]
        alone = self.arm.pool[0] if len(self.arm.pool) == 1 else (None, None)
        return {
            "name": self.arm.name,
            "kind": self.arm.kind,
            "codebook_size": alone[0],
            "width": alone[1],
            "pool": [list(pair) for pair in self.arm.pool],
            "codebook_floats": self.arm.codebook_floats,
            "model": self.arm.model,
            "mean": {name: self.mean(name) for name in single},
            "spread": {name: self.spread(name) for name in single},
            "seeds": {str(seed): dict(figures) for seed, figures in self.seeds.items()},
            "history": {str(seed): list(entries) for seed, entries in self.history.items()},
        }


@dataclass(frozen=True)
class Findings:
    """The whole study.

    Args:
        pairs: What the capacity was spent on, from wide to narrow.
        steps: Of training, of each arm.
        seeds: Which.
        data: What the arms were judged by.
        machine: What the seconds belong to.
        arms: All of them, as they were trained.
    """

    pairs: tuple[Pair, ...]
    steps: int
    seeds: tuple[int, ...]
    data: Mapping[str, Any]
    machine: Mapping[str, Any]
    arms: tuple[ArmFigures, ...]

    @property
    def adaptive(self) -> ArmFigures:
        """The pool with its learned choice."""
        return next(one for one in self.arms if one.arm.kind == "adaptive")

    @property
    def best_fixed(self) -> ArmFigures:
        """The pair with the least error, at whatever rate."""
        return min(self._fixed(), key=_error)

    @property
    def best_at_no_more_bits(self) -> ArmFigures | None:
        """The pair with the least error among those whose rate is at most the pool's."""
        most = self.adaptive.mean("rate_bits") + SAME_BITS
        within = [one for one in self._fixed() if one.mean("rate_bits") <= most]
        return min(within, key=_error) if within else None

    def verdict(self) -> dict[str, Any]:
        """The pool against the best pair, in numbers."""
        best, pool = self.best_fixed, self.adaptive
        within = self.best_at_no_more_bits
        return {
            "best_fixed": best.arm.name,
            "best_fixed_at_no_more_bits": None if within is None else within.arm.name,
            "adaptive_has_less_error": _error(pool) < _error(best),
            "seeds_with_less_error": sum(
                pool.seeds[seed]["mse_0_to_1"] < best.seeds[seed]["mse_0_to_1"]
                for seed in self.seeds
            ),
            "more_bits_than_best_fixed": pool.mean("rate_bits") - best.mean("rate_bits"),
            "more_coded_bits_than_best_fixed": pool.mean("coded_bits") - best.mean("coded_bits"),
            "times_the_codebook_floats": pool.arm.codebook_floats / best.arm.codebook_floats,
        }

    def sentences(self) -> list[str]:
        """The verdict in words; every error with its rate."""
        best, pool, verdict = self.best_fixed, self.adaptive, self.verdict()
        less = "less" if verdict["adaptive_has_less_error"] else "no less"
        told = [
            f"best fixed pair: {best.arm.name}, {_told(best)}",
            f"adaptive: {_told(pool)}: {less} error than the best fixed pair, "
            f"{_bits(verdict['more_bits_than_best_fixed'])}, with "
            f"{verdict['times_the_codebook_floats']:g} times its codebook numbers"
            + _in_seeds(verdict["seeds_with_less_error"], len(self.seeds)),
        ]
        within = self.best_at_no_more_bits
        if within is None:
            told.append("no fixed pair has as few bits as adaptive")
        elif within is not best:
            name = within.arm.name
            told.append(f"best fixed pair with no more bits than adaptive: {name}, {_told(within)}")
        return told

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "capacity": self.pairs[0][0] * self.pairs[0][1],
            "pairs": [list(pair) for pair in self.pairs],
            "steps": self.steps,
            "seeds": list(self.seeds),
            "data": dict(self.data),
            "machine": dict(self.machine),
            **self.verdict(),
            "in_words": self.sentences(),
            "arms": [one.as_dict() for one in self.arms],
        }

    def _fixed(self) -> list[ArmFigures]:
        return [one for one in self.arms if one.arm.kind == "fixed"]


def _error(one: ArmFigures) -> float:
    return one.mean("mse_0_to_1")


def _told(one: ArmFigures) -> str:
    return f"MSE {_error(one):.6f} at {one.mean('rate_bits'):.2f} bits a place"


def _bits(more: float) -> str:
    if abs(more) < SAME_BITS:
        return "at the same rate"
    return f"at {abs(more):.2f} bits a place {'more' if more > 0 else 'less'}"


def _in_seeds(wins: int, seeds: int) -> str:
    return f" (less error in {wins} of {seeds} seeds)" if seeds > 1 else ""


def _mean_entry(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in entries[0].items():
        if isinstance(value, list):
            made[name] = [
                mean(values) for values in zip(*(one[name] for one in entries), strict=True)
            ]
        elif isinstance(value, (int, float)):
            made[name] = mean(one[name] for one in entries)
    return made
