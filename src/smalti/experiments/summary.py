"""A table's results beside the paper's numbers, and the state of all tables, as plain data."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from smalti.experiments.caveats import caveats
from smalti.experiments.claims import judge
from smalti.experiments.results import Result, measurements, read_results
from smalti.experiments.running import missing
from smalti.experiments.table import Scale, Table

# Larger numbers count something.
COUNT = 1000


def summary(table: Table, scale: Scale, folder: Path) -> dict[str, Any]:
    """Means and spreads over seeds, the paper's numbers, and the verdicts.

    Args:
        table: Which.
        scale: How large it was run.
        folder: Where results lie.
    """
    results = read_results(folder, table, scale)
    found = measurements(results)
    labels = {**table.labels, **{metric.name: metric.label for metric in table.metrics}}
    rows = []
    for arm in table.arms_at(scale):
        own = found.get(arm.name, {})
        rows.append(
            {
                "arm": arm.name,
                "seeds": len(results.get(arm.name, ())),
                "metrics": {
                    metric.name: _mean_and_spread([*own.get(metric.name, {}).values()])
                    for metric in table.metrics
                },
                "reported": dict(arm.reported),
                "listing": _listing(results.get(arm.name, ())),
                "seconds": _mean([result.seconds for result in results.get(arm.name, ())]),
            }
        )
    verdicts = [
        (claim, judge(claim, found, labels, paired=table.paired))
        for claim in table.claims_at(scale)
    ]
    return {
        "table": table.name,
        "paper": table.paper,
        "where": table.where,
        "title": table.title,
        "scale": scale,
        "caveats": list(caveats(scale, results)),
        "unit": table.unit,
        "minutes": table.minutes.get(scale),
        "untestable": table.untestable,
        "metrics": [
            {"name": metric.name, "label": metric.label, "better": metric.better}
            for metric in table.metrics
        ],
        "arms": rows,
        "claims": [
            {
                "claim": claim.sentence,
                "verdict": verdict.word,
                "evidence": list(verdict.evidence),
                "seeds": verdict.seeds,
                "why": claim.why,
            }
            for claim, verdict in verdicts
        ],
    }


def state(table: Table, scale: Scale, folder: Path) -> dict[str, Any]:
    """How much of a table is done, and what the rest costs."""
    jobs = len(table.arms_at(scale)) * len(table.seeds_at(scale))
    open_jobs = 0 if table.untestable else len(missing(table, scale, folder))
    minutes = table.minutes.get(scale)
    return {
        "table": table.name,
        "paper": table.paper,
        "where": table.where,
        "done": "can't be tested here" if table.untestable else f"{jobs - open_jobs} of {jobs}",
        "minutes an arm": minutes,
        "hours left": None if minutes is None else round(open_jobs * minutes / 60, 2),
    }


def shown(cell: dict[str, float] | None, reported: float | None) -> str:
    """A cell for people: mean, spread over seeds in brackets, and the paper's number."""
    if cell is None:
        ours = "-"
    else:
        spread = f" ({cell['spread']:.2g})" if "spread" in cell else ""
        ours = f"{_written(cell['mean'])}{spread}"
    return ours if reported is None else f"{ours}; paper {_written(reported)}"


def _written(number: float) -> str:
    """Four digits, and counts whole."""
    return f"{number:,.0f}" if abs(number) >= COUNT else f"{number:.4g}"


def _listing(results: Sequence[Result]) -> dict[str, Any] | None:
    """What the first seed has to list, where it has: ``columns`` and ``rows``."""
    return results[0].details.get("listing") if results else None


def _mean_and_spread(values: list[float]) -> dict[str, float] | None:
    if not values:
        return None
    made = {"mean": statistics.mean(values)}
    if len(values) > 1:
        made["spread"] = statistics.stdev(values)
    return made


def _mean(values: list[float]) -> float | None:
    return round(statistics.mean(values), 1) if values else None
