"""``smalti list``: what there is to choose from."""

from __future__ import annotations

from typing import Annotated

import typer

from smalti.cli.output import AsJson, show
from smalti.errors import ConfigError

# Each a package of that registry's name, or where else it is.
FAMILIES = {
    "quantizers": "smalti.quantizers",
    "compressors": "smalti.embeddings",
    "autoencoders": "smalti.autoencoders",
    "likelihoods": "smalti.autoencoders.likelihoods",
    "priors": "smalti.priors",
    "translators": "smalti.translation",
}


def list_family(
    family: Annotated[str, typer.Argument(help=f"What to list: {', '.join(FAMILIES)}.")],
    as_json: AsJson = False,
) -> None:
    """List the members of a family and what they are; with --json their settings too.

    Example: smalti list compressors
    """
    if family not in FAMILIES:
        known = ", ".join(FAMILIES)
        raise ConfigError(f"there is no family {family!r}; the known ones are: {known}")
    import inspect
    from importlib import import_module

    from smalti.specs import setting_names

    members = getattr(import_module(FAMILIES[family]), family)
    entries = [
        {
            "name": name,
            "class": kind.__name__,
            "what": (inspect.getdoc(kind) or "").split("\n", 1)[0].replace("``", ""),
        }
        for name, kind in members
    ]
    if as_json:
        for entry, (_, kind) in zip(entries, members, strict=True):
            entry["settings"] = ", ".join(setting_names(kind))
    show(entries, as_json)
