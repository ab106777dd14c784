"""``smalti export``: a dense checkpoint for programs that don't know smalti."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smalti.cli.output import AsJson, show


def export(
    directory: Annotated[Path, typer.Argument(help="A model with a compressed table.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The directory to write.")],
    overwrite: Annotated[
        bool, typer.Option(help="Replace the directory, whatever it holds.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a dense checkpoint that loads without smalti.

    Example: smalti export small-model -o dense-model
    """
    from smalti.hub import export_model
    from smalti.hub.footprint import disk_bytes

    written = export_model(directory, output, overwrite=overwrite)
    content = {
        "directory": str(written),
        "bytes": disk_bytes(written),
        "compressed_bytes": disk_bytes(directory),
    }
    show(content, as_json)
