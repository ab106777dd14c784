"""How commands print: a table for people, JSON for programs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from smalti.errors import ArtifactError, require

# Characters of a line, where it may be longer than the terminal is wide.
LONGEST = 1000
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def show(
    content: Mapping[str, Any] | Sequence[Mapping[str, Any]], as_json: bool, whole: bool = False
) -> None:
    """Print one record, or a list of records with the same keys.

    Args:
        content: What to print.
        as_json: As JSON instead of a table.
        whole: Whether a line may be longer than the terminal is wide: numbers that are cut off
            say nothing.
    """
    if as_json:
        typer.echo(json.dumps(content, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    if isinstance(content, Mapping):
        table.add_column("what", no_wrap=True)
        table.add_column("value", overflow="fold")
        for key, value in content.items():
            table.add_row(key, _cell(value))
    elif content:
        *names, last = content[0]
        for key in names:
            table.add_column(key, no_wrap=True)
        table.add_column(last, overflow="fold")
        for record in content:
            table.add_row(*(_cell(value) for value in record.values()))
    console = Console()
    if whole:
        needed = console.measure(table, options=console.options.update(width=LONGEST)).maximum
        console = Console(width=max(console.width, needed))
    console.print(table)


def _cell(value: Any) -> str:
    from rich.markup import escape

    if isinstance(value, str):
        return escape(value)
    if value is None:
        return "-"
    return escape(json.dumps(value))


def show_plan(plan: Mapping[str, Any], as_json: bool) -> None:
    """Print what would be done."""
    if as_json:
        show(plan, as_json)
        return
    tell(plan["notes"])
    tables = [f"{name}: {size:,} bytes" for name, size in plan["would_try"].items()]
    places = ", ".join(plan["stands_at"])
    shown = {name: value for name, value in plan.items() if name != "notes"}
    show({**shown, "stands_at": places, "would_try": "\n".join(tables)}, as_json)


def check_file(path: Path, holds: str | None = None) -> None:
    """Refuse a file that ``write_file`` could not write, or that is not ours to replace.

    Args:
        path: The file to write.
        holds: A key of the JSON file that may be replaced; None lets any file be replaced.
    """
    if holds is not None and path.is_file():
        try:
            ours = holds in json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, TypeError):
            ours = False
        require(ours, f"{path} holds something else: choose another file", ArtifactError)
    require(
        (path.is_file() or not path.exists())
        and path.parent.is_dir()
        and os.access(path.parent, os.W_OK),
        f"can't write the file {path}: name one in a directory that can be written to",
        ArtifactError,
    )


def tell(notes: Iterable[str]) -> None:
    """Say on stderr what the user should know; stdout is for results."""
    for note in notes:
        typer.echo(f"note: {note}", err=True)
