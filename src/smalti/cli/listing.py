"""``smalti list``: what there is to choose from."""

from __future__ import annotations

from typing import Annotated

import typer

from smalti.cli.output import AsJson, show
from smalti.errors import ConfigError

FAMILIES = ("quantizers",)


def list_family(
    family: Annotated[str, typer.Argument(help=f"What to list: {', '.join(FAMILIES)}.")],
    as_json: AsJson = False,
) -> None:
    """List the members of a family, their settings and what they are.

    Example: smalti list quantizers
    """
    if family not in FAMILIES:
        raise ConfigError(f"there is no family {family!r}; the known ones are: {FAMILIES[0]}")
    import inspect

    from smalti.quantizers import quantizers
    from smalti.quantizers.base import setting_names

    entries = [
        {
            "name": name,
            "class": kind.__name__,
            "what": (inspect.getdoc(kind) or "").split("\n", 1)[0].replace("``", ""),
        }
        for name, kind in quantizers
    ]
    if as_json:
        for entry, (_, kind) in zip(entries, quantizers, strict=True):
            entry["settings"] = ", ".join(setting_names(kind))
    show(entries, as_json)
