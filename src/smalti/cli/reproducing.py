"""``smalti reproduce``: the tables of the papers, measured again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from smalti.cli.options import use_threads
from smalti.cli.output import AsJson, check_file, show, tell
from smalti.errors import ConfigError, require
from smalti.together import is_first


def reproduce(
    name: Annotated[str | None, typer.Argument(help="A table; see --list.")] = None,
    scale: Annotated[
        Literal["tiny", "laptop", "paper"],
        typer.Option(help="Seconds, minutes an arm on two cores, or the published setting."),
    ] = "laptop",
    arm: Annotated[str | None, typer.Option(help="Only this row.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, max=2**31 - 1, help="Only this seed.")] = None,
    results: Annotated[Path, typer.Option(help="Where results lie.")] = Path("results"),
    work: Annotated[Path, typer.Option(help="Where unfinished runs lie.")] = Path("runs/reproduce"),
    every: Annotated[
        bool,
        typer.Option("--all", help="Run all tables, first seeds and short runs first."),
    ] = False,
    listed: Annotated[bool, typer.Option("--list", help="Show all tables.")] = False,
    page: Annotated[
        Path | None,
        typer.Option(
            help="Write all verdicts and figures: docs/papers.md, or one HTML page, x.html."
        ),
    ] = None,
    show_only: Annotated[bool, typer.Option("--show", help="Run nothing; print.")] = False,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Threads to compute with; one where nothing is said, since more give other "
            "roundings, but for the scale paper.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run what is missing of a table, and print it beside the paper's numbers.

    Finished work is skipped; what was interrupted goes on. Several commands at once share the
    work.

    Example: smalti reproduce depthwise-ablation --scale laptop
    """
    from smalti.experiments import known_tables, run_all, run_table, state, summary, table_named

    if sum([listed, every, page is not None, name is not None]) != 1:
        raise ConfigError("name a table, or use --all, --list or --page FILE; one of them")
    if name is None and (arm is not None or seed is not None or show_only):
        raise ConfigError("--arm, --seed and --show are for one table: name it")
    if show_only and (arm is not None or seed is not None):
        raise ConfigError("--show prints a whole table: leave --arm and --seed out")
    for folder in (results, work):
        require(not folder.exists() or folder.is_dir(), f"{folder} is a file: name a folder")
    # Results say with how many threads they were made: the same number gives the same metrics.
    use_threads(threads if threads is not None or scale == "paper" else 1)
    table = None if name is None else table_named(name)
    if every:
        lacking = run_all(known_tables(), scale, results, work, tell=_told)
        for left_out, why in lacking.items():
            _told(f"{left_out} was left out: {why}")
    elif table is not None and not show_only:
        run_table(table, scale, results, work, arm, seed, tell=_told)
    # Of several processes one has the word.
    if not is_first():
        return
    if page is not None:
        _write_page(page, scale, results)
        show({"page": str(page)}, as_json)
    elif table is None:
        show([state(one, scale, results) for one in known_tables()], as_json, whole=True)
    elif as_json:
        show(summary(table, scale, results), as_json)
    else:
        _print(summary(table, scale, results))


def _told(line: str) -> None:
    if is_first():
        tell([line])


def _write_page(path: Path, scale: Literal["tiny", "laptop", "paper"], results: Path) -> None:
    from smalti import report
    from smalti.experiments import known_tables
    from smalti.experiments.page import check_page, write_page
    from smalti.experiments.report_page import report_of

    if path.suffix == ".html":
        report.check_page(path)
        report.write_page(report_of(known_tables(), scale, results), path)
        return
    require(path.suffix == ".md", f"can't write {path}: a page ends in .md or in .html")
    check_file(path)
    check_page(path)
    write_page(path, known_tables(), scale, results)


def _print(content: dict[str, Any]) -> None:
    from smalti.experiments.summary import shown

    typer.echo(f"{content['title']} ({content['paper']}, {content['where']}; {content['scale']})")
    rows = [
        {
            "arm": row["arm"],
            "seeds": row["seeds"],
            **{
                metric["label"]: shown(
                    row["metrics"][metric["name"]], row["reported"].get(metric["name"])
                )
                for metric in content["metrics"]
            },
        }
        for row in content["arms"]
    ]
    show(rows, False, whole=True)
    if content["unit"]:
        typer.echo(f"the paper's numbers: {content['unit']}")
    for line in content["caveats"]:
        typer.echo(f"beware: {line}")
    for claim in content["claims"]:
        typer.echo(f"{claim['verdict']}: {claim['claim']}")
        for line in claim["evidence"]:
            typer.echo(f"    {line}")
