"""Run what is missing of a table; finished work is skipped and interrupted work goes on."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from filelock import Timeout

from smalti.errors import ArtifactError, ConfigError, DataError, MissingExtraError, require
from smalti.experiments.attempts import Earlier, attempts_file, begin_attempt
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
from smalti.together import agreed, are_several, is_first, locked, meet

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

    An arm that another table has run with the very same settings is not run again, and one that
    another process is at is left to it: several commands at once share the work. Processes that
    accelerate started together work on one arm at a time; the first of them writes.

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
    if reason := _refused(table):
        raise ConfigError(reason)
    made = []
    jobs = agreed(missing(table, scale, folder, arm, seed))
    if jobs:
        _require_folders(folder, work)
    for number, (one, own_seed) in enumerate(jobs, start=1):
        if tell is not None:
            tell(f"{table.name}, {scale}: {one.name}, seed {own_seed} ({number} of {len(jobs)})")
        known = agreed(measured_elsewhere(folder, scale, own_seed, table.spec_hash(one, scale)))
        if known is not None:
            made.append(replace(known, table=table.name, arm=one.name))
            _write(folder, table, one, made[-1])
            continue
        # The hash keeps checkpoints of other settings apart.
        name = f"{file_name(one.name)}.{own_seed}.{table.spec_hash(one, scale)}"
        place = work / table.name / scale / name
        with _claimed(place) as ours:
            if not ours and tell is not None:
                tell(f"{table.name}: another process is at {one.name}, seed {own_seed}")
            # It may have been finished by another while this one was busy.
            if ours and not agreed(is_done(folder, table, one, scale, own_seed)):
                made.append(_measured(table, one, scale, own_seed, place))
                _write(folder, table, one, made[-1])
    return made


def run_all(
    tables: Sequence[Table],
    scale: Scale,
    folder: Path,
    work: Path,
    tell: Callable[[str], None] | None = None,
) -> dict[str, str]:
    """Run what is missing of all tables: every first seed before any second, short runs first.

    Args:
        tables: Which.
        scale: How large.
        folder: Where results are written.
        work: Where runs leave their checkpoints.
        tell: Called with a line before each run.

    Returns:
        What is in a table's way, such as a data set that is missing, by its name; the others ran.
    """
    testable = [table for table in tables if table.untestable is None]
    order = sorted(testable, key=lambda table: table.minutes.get(scale, 0.0))
    lacking: dict[str, str] = {}
    for seed in sorted({seed for table in order for seed in table.seeds_at(scale)}):
        for table in order:
            if table.name in lacking or seed not in table.seeds_at(scale):
                continue
            if reason := _refused(table):
                lacking[table.name] = reason
                continue
            try:
                run_table(table, scale, folder, work, seed=seed, tell=tell)
            except (ArtifactError, DataError, MissingExtraError) as error:
                lacking[table.name] = str(error)
    return lacking


@contextmanager
def _claimed(place: Path) -> Iterator[bool]:
    """Make a run's folder this process's own; False where another has it. It goes with the end."""
    place.mkdir(parents=True, exist_ok=True)
    lock = Path(f"{place}.lock")
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(lock, wait=False))
        except Timeout:
            yield False
            return
        yield True
        # The others may still be reading.
        meet()
        if is_first():
            shutil.rmtree(place, ignore_errors=True)
            attempts_file(place).unlink(missing_ok=True)
            lock.unlink(missing_ok=True)


def measured_elsewhere(folder: Path, scale: Scale, seed: int, spec_hash: str) -> Result | None:
    """A result of the very same settings in any table: an arm that stands in two runs once.

    Args:
        folder: Where results lie.
        scale: How large.
        seed: Of everything random.
        spec_hash: Of the settings.
    """
    for path in sorted(folder.glob(f"*/{scale}/*.{seed}.json")):
        # What is wrong with another table's files is said where that table is asked for.
        with suppress(ArtifactError):
            result = read_result(path)
            if result.spec_hash == spec_hash:
                return result
    return None


def _refused(table: Table) -> str | None:
    """Why these processes can't measure a table together; None where they can."""
    if are_several() and not kind_named(table.kind).together:
        return (
            f"{table.name} is measured by one process, and several were started; start it alone, "
            "such as with accelerate launch --num_processes 1"
        )
    return None


def _require_folders(*folders: Path) -> None:
    """Hours of work must not end at a folder that can't be written to."""
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ArtifactError(f"can't write into {folder}: {error}") from error


def _write(folder: Path, table: Table, arm: Arm, result: Result) -> None:
    if is_first():
        write_result(folder, table, arm, result)
    meet()


def _measured(table: Table, arm: Arm, scale: Scale, seed: int, place: Path) -> Result:
    settings = table.settings(arm, scale)
    # Before the run: files may be edited while it goes on.
    source = source_hash()
    earlier = agreed(begin_attempt(place, source) if is_first() else Earlier(0, ()))
    began = time.monotonic()
    measured = kind_named(table.kind).measure(table.settings(arm, scale), seed, place)
    known = {**measured.metrics, **measured.timings}
    unknown = [metric.name for metric in table.metrics if metric.name not in known]
    require(
        len(unknown) < len(table.metrics),
        f"{table.kind} measures none of {', '.join(unknown)}; it measures {', '.join(known)}",
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
        timings=measured.timings,
        details=measured.details,
        seconds=round(earlier.seconds + time.monotonic() - began, 2),
        machine=machine(),
        versions=installed(),
    )
