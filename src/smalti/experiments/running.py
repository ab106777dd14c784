"""Run what is missing of a table; finished work is skipped and interrupted work goes on."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from smalti.errors import ConfigError, require
from smalti.experiments.attempts import begin_attempt
from smalti.experiments.kinds import kind_named
from smalti.experiments.results import (
    Result,
    file_name,
    installed,
    machine,
    read_result,
    result_path,
    source_hash,
    write_result,
)
from smalti.experiments.table import Arm, Scale, Table

Job = tuple[Arm, int]


def missing(
    table: Table,
    scale: Scale,
    folder: Path,
    arm: str | None = None,
    seed: int | None = None,
) -> list[Job]:
    """Arms and seeds without a result that belongs to the declaration, seeds outermost.

    Args:
        table: Of which.
        scale: How large.
        folder: Where results lie.
        arm: Only this one.
        seed: Only this one, also one that the table does not ask for.
    """
    arms = table.arms_at(scale) if arm is None else [table.arm(arm)]
    seeds: Sequence[int] = table.seeds_at(scale) if seed is None else [seed]
    return [
        (one, number)
        for number in seeds
        for one in arms
        if not is_done(folder, table, one, scale, number)
    ]


def is_done(folder: Path, table: Table, arm: Arm, scale: Scale, seed: int) -> bool:
    """Whether there is a result of these very settings."""
    path = result_path(folder, table, arm, scale, seed)
    return path.exists() and read_result(path).spec_hash == table.spec_hash(arm, scale)


def run_table(
    table: Table,
    scale: Scale,
    folder: Path,
    work: Path,
    arm: str | None = None,
    seed: int | None = None,
    tell: Callable[[str], None] | None = None,
) -> list[Result]:
    """Run what is missing and write a result after each.

    An arm that another table has run with the very same settings is not run again.

    Args:
        table: What to run.
        scale: How large.
        folder: Where results are written.
        work: Where runs leave their checkpoints; a finished run's are removed.
        arm: Only this one.
        seed: Only this one.
        tell: Called with a line before each run.

    Returns:
        The new results.
    """
    if table.untestable is not None:
        raise ConfigError(f"{table.name} can't be tested here: {table.untestable}")
    made = []
    jobs = missing(table, scale, folder, arm, seed)
    for number, (one, own_seed) in enumerate(jobs, start=1):
        if tell is not None:
            tell(f"{table.name}, {scale}: {one.name}, seed {own_seed} ({number} of {len(jobs)})")
        known = measured_elsewhere(folder, scale, own_seed, table.spec_hash(one, scale))
        if known is not None:
            made.append(replace(known, table=table.name, arm=one.name))
            write_result(folder, table, one, made[-1])
            continue
        # The hash keeps checkpoints of other settings apart.
        name = f"{file_name(one.name)}.{own_seed}.{table.spec_hash(one, scale)}"
        place = work / table.name / scale / name
        place.mkdir(parents=True, exist_ok=True)
        made.append(_measured(table, one, scale, own_seed, place))
        write_result(folder, table, one, made[-1])
        shutil.rmtree(place, ignore_errors=True)
    return made


def measured_elsewhere(folder: Path, scale: Scale, seed: int, spec_hash: str) -> Result | None:
    """A result of the very same settings in any table: an arm that stands in two runs once.

    Args:
        folder: Where results lie.
        scale: How large.
        seed: Of everything random.
        spec_hash: Of the settings.
    """
    for path in sorted(folder.glob(f"*/{scale}/*.{seed}.json")):
        result = read_result(path)
        if result.spec_hash == spec_hash:
            return result
    return None


def _measured(table: Table, arm: Arm, scale: Scale, seed: int, place: Path) -> Result:
    settings = table.settings(arm, scale)
    # Before the run: files may be edited while it goes on.
    source = source_hash()
    earlier = begin_attempt(place, source)
    began = time.monotonic()
    measured = kind_named(table.kind).measure(table.settings(arm, scale), seed, place)
    unknown = [metric.name for metric in table.metrics if metric.name not in measured.metrics]
    require(
        len(unknown) < len(table.metrics),
        f"{table.kind} measures none of {', '.join(unknown)}; it measures "
        f"{', '.join(measured.metrics)}",
    )
    return Result(
        table=table.name,
        arm=arm.name,
        scale=scale,
        seed=seed,
        spec={"kind": table.kind, **settings},
        spec_hash=table.spec_hash(arm, scale),
        source_hash="+".join(dict.fromkeys((*earlier.sources, source))),
        metrics=measured.metrics,
        details=measured.details,
        seconds=round(earlier.seconds + time.monotonic() - began, 2),
        machine=machine(),
        versions=installed(),
    )
