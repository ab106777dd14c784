"""``smalti inspect``: what a saved directory holds, after checking it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from smalti.cli.output import AsJson, show


def inspect(
    directory: Annotated[
        Path, typer.Argument(help="A directory that smalti wrote: a layer or a model.")
    ],
    as_json: AsJson = False,
) -> None:
    """Check a saved directory, its checksums included, and describe it.

    Example: smalti inspect small-model
    """
    from smalti.artifacts import MANIFEST

    model = (directory / "config.json").is_file() and not (directory / MANIFEST).is_file()
    show(_model(directory, as_json) if model else _layer(directory), as_json)


def _model(directory: Path, as_json: bool) -> dict[str, Any]:
    from smalti.hub import read_info

    info = read_info(directory)
    if as_json:
        return info
    sizes = info.pop("sizes")
    return {
        **{name: value for name, value in info.items() if not name.endswith("_bytes")},
        **{f"table bytes, {part}": f"{size:,}" for part, size in sizes.items()},
        "table bytes, dense": f"{info['dense_bytes']:,}",
        "model bytes": f"{info['model_bytes']:,}",
    }


def _layer(directory: Path) -> dict[str, Any]:
    from smalti.artifacts import read_manifest
    from smalti.quantizers.saving import load

    manifest = read_manifest(directory)
    layer = load(directory)
    return {
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
