"""How commands print: a table for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def show(content: Mapping[str, Any] | Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """Print one record, or a list of records with the same keys."""
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
    Console().print(table)


def _cell(value: Any) -> str:
    from rich.markup import escape

    if isinstance(value, str):
        return escape(value)
    return escape(json.dumps(value))
