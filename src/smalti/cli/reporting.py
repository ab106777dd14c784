"""``smalti report``: one page that shows what a model, a table, a run or a search is worth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smalti.cli.options import (
    Columns,
    CountsFile,
    Side,
    TextFiles,
    Threads,
    split_columns,
    use_threads,
)
from smalti.cli.output import AsJson, show, tell
from smalti.errors import SmaltiError

if TYPE_CHECKING:
    from smalti.report import Report

WithPage = Annotated[
    bool, typer.Option("--report/--no-report", help="Whether to write a page about the result.")
]


def report(
    model: Annotated[
        Path,
        typer.Argument(help="A compressed model or table, a run, or a file of smalti tune."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
    against: Annotated[
        str | None, typer.Option(help="The original; by default what the model was made from.")
    ] = None,
    text: TextFiles = None,
    column: Columns = None,
    counts: CountsFile = None,
    words: Annotated[
        str | None, typer.Option(help="Words to show with codes and neighbours: oil,gold,monday.")
    ] = None,
    neighbour_rows: Annotated[
        int, typer.Option(min=1, help="Neighbours are found for so many rows, the commonest.")
    ] = 20_000,
    data: Annotated[
        str | None, typer.Option(help="Images for a run: a known set, a file or a folder.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Of these: train, valid or test.")] = None,
    size: Side = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Write a page that shows what was gained and lost; it is one file and works offline.

    With --json all findings are printed; the page is written as well.

    Example: smalti report small --against all-MiniLM-L6-v2 --text corpus.txt -o report.html

    Example: smalti report runs/digits -o digits.html
    """
    from smalti.report import check_page, make_report, write_page

    use_threads(threads)
    # Minutes of work must not end at a file that can't be written.
    check_page(output)
    made = make_report(
        model,
        against,
        text=text or [],
        columns=split_columns(column),
        counts=counts,
        words=[word for word in (words or "").split(",") if word],
        data=data,
        split=split,
        size=size,
        neighbour_rows=neighbour_rows,
    )
    place = write_page(made, output)
    if as_json:
        show({"page": str(place), "bytes": place.stat().st_size, **made.as_dict()}, as_json)
        return
    tell(made.notes)
    typer.echo(made.headline.sentence)
    typer.echo(f"report: {place}")


def page_beside(make: Callable[[], Report], path: Path) -> str | None:
    """Write the page of a result that is already saved; None, with a note, where that fails.

    A result that took minutes to make must not fail because of the page about it.

    Args:
        make: Makes the report.
        path: Where the page shall be.
    """
    from smalti.report import check_page, write_page

    try:
        check_page(path)
        return str(write_page(make(), path))
    except SmaltiError as error:
        tell([f"no report was written: {error}"])
        return None
