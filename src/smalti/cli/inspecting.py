"""``smalti inspect``: what a saved directory holds, after checking it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from smalti.cli.output import AsJson, show


def inspect(
    directory: Annotated[Path, typer.Argument(help="A directory that smalti wrote.")],
    as_json: AsJson = False,
) -> None:
    """Check a saved directory and describe it.

    Example: smalti inspect my-quantizer
    """
    from smalti.artifacts import read_manifest
    from smalti.quantizers.saving import load

    manifest = read_manifest(directory)
    layer = load(directory)
    content: dict[str, Any] = {
        "directory": str(directory),
        "kind": manifest["kind"],
        "format_version": manifest["format_version"],
        **manifest["spec"],
        "code_sizes": list(layer.code_sizes),
        "bits_per_vector": round(layer.bits_per_vector, 4),
        "bytes": sum(manifest["sizes"].values()),
        "origin": manifest["origin"],
        "versions": manifest["versions"],
    }
    show(content, as_json)
