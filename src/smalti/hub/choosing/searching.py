"""Searches methods, kept shares and code lengths for the best table within a budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from smalti.embeddings import CompressedEmbedding, Compressor
from smalti.errors import ConfigError, require
from smalti.hub.choosing.candidates import (
    Table,
    plain_candidates,
    tiered_candidates,
    turned_candidates,
)
from smalti.hub.choosing.journal import Entry, Journal
from smalti.hub.choosing.judging import Judge, Verdict
from smalti.progress import progress_bar

# Sizes tried, in percent of the float32 table, when the loss is bounded and not the size.
LADDER = (1.5, 2.5, 4.0, 7.0, 12.0, 20.0, 27.0)
# How much more than another a table must lose to be clearly worse: a tenth, and more than the
# last bits of sums can make of two tables that lose nothing.
CLEARLY, ROUNDING = 1.1, 1e-5
# They learn step by step, which takes minutes, and come after product codes at every size.
SLOW = ("compositional", "differentiable")


@dataclass(frozen=True)
class Trial:
    """One table that was tried.

    Args:
        compressor: How it was made.
        bytes: What it takes.
        percent: That in percent of the float32 table.
        verdict: What it does to the model.
        seconds: How long fitting and judging took.
        taught: Whether its codewords have learned from the model's outputs.
    """

    compressor: Compressor
    bytes: int
    percent: float
    verdict: Verdict
    seconds: float
    taught: bool = False

    @property
    def words(self) -> str:
        """How it was made, in a few words."""
        return describe(self.compressor) + (", taught" if self.taught else "")

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "table": self.words,
            "percent": round(self.percent, 3),
            "bytes": self.bytes,
            "cosine": round(self.verdict.cosine, 5),
            "score": None if self.verdict.score is None else round(self.verdict.score, 3),
            "drop_percent": round(self.verdict.drop, 3),
            "seconds": round(self.seconds, 1),
            "taught": self.taught,
            "spec": self.compressor.spec(),
        }


class Search:
    """Tries tables and remembers all of them.

    Args:
        table: The model's table with the use of its rows.
        judge: Says what a table does to the model.
        seed: Where random choices come from.
        progress: Whether to draw a bar on stderr; None does so on a terminal.
        journal: Where trials are written down.
    """

    def __init__(
        self,
        table: Table,
        judge: Judge,
        *,
        seed: int = 0,
        progress: bool | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.journal = journal or Journal(None, {})
        self.table, self.judge, self.seed, self.progress = table, judge, seed, progress
        self.trials: list[Trial] = []
        self._tables: dict[tuple[Compressor, bool], CompressedEmbedding] = {}

    def attempt(self, compressor: Compressor) -> Trial:
        """One table."""
        return self._try([compressor], "table")[0]

    def within(self, percent: float, *, every_method: bool = False) -> Trial:
        """The best table of at most ``percent`` percent of the float32 table.

        Args:
            percent: The budget.
            every_method: Also try the methods that tiers of codes usually beat.
        """
        chosen = self.candidates(self.table, percent, self.seed, every_method=every_method)
        if not chosen:
            raise ConfigError(
                f"no table fits into {percent:g} % of {self.table.dense_bytes:,} bytes; "
                "allow a larger size"
            )
        what = f"tables of {percent:g} %"
        if not every_method:
            chosen = self._without_worse_tiers(chosen, what)
        return self.best(self._try(chosen, what))

    def _without_worse_tiers(self, chosen: list[Compressor], what: str) -> list[Compressor]:
        """Leave out turned tiers or plain ones where the first of them is clearly worse.

        A first one speaks for others of its making only: where no tiers fit, the one turned
        table stands among tables of many methods, and all of them are tried.
        """
        turned, others = ([c for c in chosen if c.heeds_metric is kind] for kind in (True, False))
        if min(len(turned), len(others)) < 2:
            return chosen
        one, other = self._try([turned[0], others[0]], what)
        if _clearly_worse(one, other):
            return others
        # Plain product codes come last, and are tried whatever happens.
        return [*turned, others[-1]] if _clearly_worse(other, one) else chosen

    @staticmethod
    def candidates(
        table: Table, percent: float, seed: int, *, every_method: bool = False
    ) -> list[Compressor]:
        """What is worth trying for a size: tiers and the largest product codes.

        All methods where that is asked for; all quick ones where there are no tiers.
        """
        budget = percent / 100 * table.dense_bytes
        plain = plain_candidates(table, budget)
        tiers = turned_candidates(table, budget, seed) + tiered_candidates(table, budget, seed)
        if every_method:
            return [*tiers, *plain]
        return [*tiers, *plain[:1]] if tiers else _quick(plain) or plain

    def losing(self, max_drop: float, *, every_method: bool = False) -> Trial:
        """The smallest table on the ladder of sizes that loses at most ``max_drop`` percent.

        A larger table loses less, so that half of the ladder is left out at each look.
        """
        found: dict[int, Trial] = {}
        low, high = 0, len(LADDER)
        while low < high:
            middle = (low + high) // 2
            try:
                found[middle] = self.within(LADDER[middle], every_method=every_method)
            except ConfigError:
                # Nothing is as small as this.
                low = middle + 1
                continue
            if found[middle].verdict.drop <= max_drop:
                high = middle
            else:
                low = middle + 1
        if high in found:
            return found[high]
        require(len(self.trials) > 0, "no method fits this table: it is too small to code")
        closest = self.best(self.trials)
        raise ConfigError(
            f"no table loses at most {max_drop:g} %; the closest, {closest.percent:.1f} % of the "
            f"float32 table, loses {closest.verdict.drop:.3g} %: allow a larger drop"
        )

    def teach(
        self, trial: Trial, teacher: Callable[[CompressedEmbedding], CompressedEmbedding]
    ) -> Trial:
        """The same table after its codewords have learned, as a trial of its own."""
        for known in self.trials:
            # A table that is the best of several sizes learns once.
            if known.taught and known.compressor == trial.compressor:
                return self.best([trial, known])
        found = self.journal.find(trial.compressor, taught=True)
        if found is None:
            begun = time.perf_counter()
            table = teacher(self.fitted(trial))
            self._tables[trial.compressor, True] = table
            verdict, seconds = self.judge(table), trial.seconds + time.perf_counter() - begun
            found = Entry(verdict, trial.bytes, seconds)
            self.journal.add(trial.compressor, True, *found)
        taught = replace(trial, verdict=found.verdict, seconds=found.seconds, taught=True)
        self.trials.append(taught)
        return self.best([trial, taught])

    def fitted(self, trial: Trial) -> CompressedEmbedding:
        """The table of a trial; fitted again if the trial was taken from a journal."""
        key = trial.compressor, trial.taught
        if key not in self._tables and not trial.taught:
            self._tables[key] = self.table.fit(trial.compressor, self.seed)
        return self._tables[key]

    def frontier(self) -> list[Trial]:
        """The trials that no other beats at the same size or less, from small to large."""
        best: list[Trial] = []
        for trial in sorted(self.trials, key=lambda trial: (trial.bytes, trial.verdict.drop)):
            if not best or trial.verdict.drop < best[-1].verdict.drop:
                best.append(trial)
        return best

    def _try(self, compressors: Iterable[Compressor], what: str) -> list[Trial]:
        known = {trial.compressor: trial for trial in self.trials if not trial.taught}
        chosen = list(compressors)
        with progress_bar(what, "tables", total=len(chosen), shown=self.progress) as advance:
            for compressor in chosen:
                if compressor not in known:
                    known[compressor] = self._trial(compressor)
                    self.trials.append(known[compressor])
                advance(1)
        return [known[compressor] for compressor in chosen]

    def _trial(self, compressor: Compressor) -> Trial:
        known = self.journal.find(compressor, taught=False)
        if known is None:
            begun = time.perf_counter()
            table = self.table.fit(compressor, self.seed)
            self._tables[compressor, False] = table
            verdict, size = self.judge(table), table.size().total
            known = Entry(verdict, size, time.perf_counter() - begun)
            self.journal.add(compressor, False, *known)
        verdict, size, seconds = known
        return Trial(compressor, size, 100 * size / self.table.dense_bytes, verdict, seconds)

    @staticmethod
    def best(trials: Sequence[Trial]) -> Trial:
        """The one that loses least."""
        # A labelled score is counted in examples; the cosine tells equal ones apart.
        return min(trials, key=lambda trial: (trial.verdict.drop, -trial.verdict.cosine))


def _clearly_worse(one: Trial, other: Trial) -> bool:
    """Whether outputs lose clearly more, and a labelled score does not speak against that."""
    lost, least = (1 - trial.verdict.cosine for trial in (one, other))
    return lost > CLEARLY * least + ROUNDING and one.verdict.drop >= other.verdict.drop


def _quick(compressors: list[Compressor]) -> list[Compressor]:
    return [c for c in compressors if c.spec()["compressor"] not in SLOW]


def describe(compressor: Compressor) -> str:
    """A compressor in a few words.

    Example:
        >>> from smalti.embeddings import build_compressor
        >>> describe(build_compressor("partial", keep=500, kept="int8", rest="product"))
        '500 rows integer(bits=8), rest product(num_codebooks=48)'
    """
    spec = compressor.spec()
    return _words(spec)


# What tells members of a method apart; the rest of the settings stand in the spec.
TELLING = ("choice", "num_codebooks", "bits", "rank", "neighbours")


def _words(spec: dict[str, Any] | str) -> str:
    if isinstance(spec, str):
        return f"integer(bits={spec[3:]})" if spec.startswith("int") else spec
    name = spec["compressor"]
    if name == "partial":
        rows = f"{spec['keep']:.0%} of seen" if isinstance(spec["keep"], float) else spec["keep"]
        return f"{rows} rows {_words(spec['kept'])}, rest {_words(spec['rest'])}"
    if name == "turned":
        return f"turned: {_words(spec['rest'])}"
    told = [f"{key}={spec[key]}" for key in TELLING if spec.get(key) is not None]
    return f"{name}({', '.join(told)})"
