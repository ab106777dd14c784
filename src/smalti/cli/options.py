"""Options that several commands share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from smalti.errors import ConfigError

ModelName = Annotated[str, typer.Argument(help="A directory, a .gguf file, or a model's name.")]
TextFiles = Annotated[
    list[Path] | None,
    typer.Option(help="Text that the model is used on: plain, gzipped, TSV, CSV or JSON lines."),
]
Columns = Annotated[
    list[str] | None,
    typer.Option("--column", help="Columns of text, by name or by number from 1 on."),
]
CountsFile = Annotated[
    Path | None, typer.Option(help="Saved token counts, in the place of those of a text.")
]
LabelledFile = Annotated[
    Path | None,
    typer.Option(
        help="Judge tables by labels: scored pairs, or classes for a classifier; TSV, CSV or JSON "
        "lines."
    ),
]
SizeLimit = Annotated[
    str | None,
    typer.Option("--size", help="The most that the table may take of its float32 bytes: 4%."),
]
DropLimit = Annotated[
    str | None,
    typer.Option(
        "--max-drop",
        help="The most that may be lost: 0.5% of the labelled score, or of the outputs' cosine.",
    ),
]
ImageRun = Annotated[Path, typer.Argument(help="The directory of a trained image model.")]
Images = Annotated[
    list[str], typer.Argument(help="A known set, a file, a folder, or several pictures.")
]
Split = Annotated[str, typer.Option(help="Of a set in parts: train, valid or test.")]
Side = Annotated[
    int | None,
    typer.Option("--size", min=1, help="Resize the middle square of each image to it."),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Only so many, the first.")]
Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="For what is left to chance.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads to compute with.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and stop.")]


def use_threads(threads: int | None) -> None:
    """Compute with so many threads; None leaves it to torch."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)


def split_columns(columns: Sequence[str] | None) -> list[str]:
    """Columns that were given one by one or joined by commas."""
    return [name for entry in columns or () for name in entry.split(",") if name]


def settings_from(entries: Sequence[str] | None) -> dict[str, Any]:
    """``key=value`` entries as settings; values are JSON where they can be read as such.

    Example:
        >>> settings_from(["num_codebooks=48", "rotation=true", "kept=int8"])
        {'num_codebooks': 48, 'rotation': True, 'kept': 'int8'}
    """
    settings: dict[str, Any] = {}
    for entry in entries or ():
        key, sign, value = entry.partition("=")
        if not sign or not key:
            raise ConfigError(f"expected --set key=value, got {entry!r}")
        try:
            settings[key] = json.loads(value)
        except ValueError:
            settings[key] = value
    return settings
