"""``smalti inspect``: what a saved directory or a ``.smt`` file holds, after checking it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from smalti.cli.output import AsJson, show


def inspect(
    directory: Annotated[
        Path,
        typer.Argument(help="What smalti wrote: a directory of a layer or a model, a .smt file."),
    ],
    as_json: AsJson = False,
) -> None:
    """Check a saved directory or a .smt file, its checksums included, and describe it.

    Example: smalti inspect small-model
    """
    from smalti.artifacts import MANIFEST

    if directory.is_file():
        show(_file(directory), as_json)
        return
    if (directory / "model" / MANIFEST).is_file():
        # What training made, and the model in it.
        directory = directory / "model"
    model = (directory / "config.json").is_file() and not (directory / MANIFEST).is_file()
    show(_model(directory, as_json) if model else _artifact(directory, as_json), as_json)


def _file(path: Path) -> dict[str, Any]:
    from smalti.codec import read_info

    info = read_info(path)
    size, dims = path.stat().st_size, info.count * math.prod(info.shape)
    return {
        "file": str(path),
        "kind": "coded images",
        **info.as_dict(),
        "bytes": size,
        "bits_per_dim": 8 * size / dims,
        # One that is not right has ended the command.
        "checksums": "right",
    }


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


def _artifact(directory: Path, as_json: bool) -> dict[str, Any]:
    from smalti.artifacts import read_manifest
    from smalti.embeddings.saving import KIND as TABLE
    from smalti.recipes.images.saved_run import KIND as IMAGES
    from smalti.recipes.translation.saved_run import KIND as TRANSLATION

    manifest = read_manifest(directory)
    known = {IMAGES: _images, TABLE: _table, TRANSLATION: _translation}
    describe = known.get(manifest["kind"], _layer)
    return {
        "directory": str(directory),
        "kind": manifest["kind"],
        "format_version": manifest["format_version"],
        **describe(directory, manifest, as_json),
        "bytes": sum(manifest["sizes"].values()),
        "origin": manifest["origin"],
        "versions": manifest["versions"],
    }


def _table(directory: Path, manifest: dict[str, Any], as_json: bool) -> dict[str, Any]:
    from smalti.embeddings.saving import load_table
    from smalti.embeddings.tiers import tiers

    saved = load_table(directory)
    stored = [f"{len(tier.ids):,} rows as {tier.words}" for tier in tiers(saved.table)]
    return {
        **(manifest["spec"] if as_json else {}),
        "rows": saved.table.rows,
        "dim": saved.table.dim,
        "stored as": stored,
        "sizes": saved.table.size().as_dict(),
        "tokens": saved.tokens is not None,
    }


def _layer(directory: Path, manifest: dict[str, Any], as_json: bool) -> dict[str, Any]:
    from smalti.quantizers.saving import load

    del as_json
    layer = load(directory)
    return {
        **manifest["spec"],
        "code_sizes": list(layer.code_sizes),
        "bits_per_vector": round(layer.bits_per_vector, 4),
    }


def _images(directory: Path, manifest: dict[str, Any], as_json: bool) -> dict[str, Any]:
    from smalti.recipes.images import load_run

    run = load_run(directory)
    if as_json:
        return dict(manifest["spec"])
    return {
        "autoencoder": run.autoencoder.spec()["autoencoder"],
        "images": f"{run.autoencoder.channels} x {run.size[0]} x {run.size[1]}",
        "grids of codes": [list(grid) for grid in run.autoencoder.grids(*run.size)],
        "code sizes": [list(sizes) for sizes in run.autoencoder.code_sizes],
        "priors": ", ".join(run.priors) or "none",
        **{
            f"{stage}, {name.replace('_', ' ')}": round(value, 4)
            for stage, figures in run.figures.items()
            for name, value in figures.items()
        },
    }


def _translation(directory: Path, manifest: dict[str, Any], as_json: bool) -> dict[str, Any]:
    from smalti.recipes.translation import load_translation_run
    from smalti.recipes.translation.tables import table_bytes

    run = load_translation_run(directory)
    if as_json:
        # The vocabulary is long and of use to nobody here.
        return {name: value for name, value in manifest["spec"].items() if name != "tokenizer"}
    spec = run.translator.spec()
    return {
        "translator": spec["translator"],
        "texts": f"{run.config.data.source} to {run.config.data.target}",
        "vocabulary": len(run.subwords),
        "parameters": f"{sum(item.numel() for item in run.translator.parameters()):,}",
        **{
            f"word table, {use}": f"{table.saved:,} bytes, {table.full:,} in float32"
            for use, table in table_bytes(run.translator).items()
        },
        "longest sentence": f"{run.longest} tokens",
        "beam": run.decoding.beam,
        "length penalty": run.decoding.length_penalty,
        **{
            f"{stage}, {name.replace('_', ' ')}": round(value, 4)
            for stage, figures in run.figures.items()
            for name, value in figures.items()
        },
    }
