"""Exports a model with a compressed table as a dense checkpoint for everyone else."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from smalti.artifacts import as_path, draft_of
from smalti.errors import ArtifactError, require
from smalti.hub.card import DENSE
from smalti.hub.library import quiet
from smalti.hub.loading import load_model, weight_files
from smalti.hub.saving import is_ours, seal_files

# What is written anew.
WRITTEN = {"config.json", "README.md", "model.safetensors.index.json"}


def export_model(
    directory: str | Path,
    output: str | Path,
    *,
    overwrite: bool = False,
    max_shard_size: str | int = "5GB",
    **settings: Any,
) -> Path:
    """Write a dense checkpoint that loads without smalti.

    Args:
        directory: What ``save_model`` wrote.
        output: Where to write. A directory that smalti wrote, and nobody added to, is
            replaced.
        overwrite: Replace whatever is there.
        max_shard_size: Larger models are cut into several files.
        **settings: For ``from_pretrained``, such as ``dtype``.

    Raises:
        ArtifactError: A directory can't be read or written.
    """
    origin, place = as_path(directory), as_path(output)
    require(
        origin != place,
        f"{origin} can't be exported onto itself; choose another directory",
        ArtifactError,
    )
    require(
        not place.is_relative_to(origin),
        f"{place} lies inside {origin}, which it is made of; choose another directory",
        ArtifactError,
    )
    lost = [path for path in (origin, Path.cwd()) if path.is_relative_to(place)]
    require(
        not lost,
        f"writing {place} would remove {', '.join(map(str, lost))}: choose another place",
        ArtifactError,
    )
    model = load_model(origin, **settings).dequantize()
    weights = {file.name for file in weight_files(origin)}
    with draft_of(place, lambda there: overwrite or is_ours(there)) as draft, quiet():
        # Tokenizers and the modules of sentence-transformers stay as they are.
        for path in origin.iterdir():
            if path.is_dir():
                shutil.copytree(path, draft / path.name)
            elif path.name not in WRITTEN | weights:
                shutil.copy(path, draft)
        try:
            model.save_pretrained(draft, max_shard_size=max_shard_size)
        except SafetensorError as error:
            # How safetensors says that the disk is full.
            raise ArtifactError(f"can't write {place}: {error}") from error
        title = f"{type(model).__name__}, exported"
        (draft / "README.md").write_text(DENSE.format(title=title), encoding="utf-8")
        seal_files(draft, {"exported": True})
    return place
