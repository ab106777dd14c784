"""``smalti diff``: two artifacts side by side."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from smalti.cli.options import Threads, use_threads
from smalti.cli.output import AsJson, show


def diff(
    one: Annotated[str, typer.Argument(help="A model, a table, a run, or a file of smalti tune.")],
    other: Annotated[str, typer.Argument(help="Another one of the same kind.")],
    data: Annotated[
        str | None, typer.Option(help="For runs: images whose codes are compared.")
    ] = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Compare two artifacts: sizes, scores, codes that changed, neighbours that were lost.

    Example: smalti diff small smaller
    """
    from smalti.report import compare

    use_threads(threads)
    content = compare(one, other, data)
    if as_json:
        show(content, as_json)
        return
    for side in ("a", "b"):
        typer.echo(f"{side}: {content[side].pop('name')}")
    show(_rows(content), as_json)


def _rows(content: dict[str, Any]) -> list[dict[str, str]]:
    a, b = content["a"], content["b"]
    lines = [
        {"what": key.replace("_", " "), "a": _shown(a.get(key)), "b": _shown(b.get(key))}
        for key in dict.fromkeys([*a, *b])
    ]
    between = [
        {"what": key.replace("_", " "), "a": "", "b": _shown(value)}
        for key, value in content["between"].items()
    ]
    return [*lines, *between]


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return "\n".join(f"{key} {_shown(part)}" for key, part in value.items())
    return "\n".join(_shown(part) for part in value)
