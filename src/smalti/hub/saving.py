"""Saves a model with a compressed table: an ordinary directory of transformers, sealed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from smalti.artifacts import PAGE, as_path, draft_of, is_page, versions
from smalti.errors import ArtifactError, SmaltiError, require
from smalti.hub.card import model_card
from smalti.hub.groups import input_embedding
from smalti.hub.library import Model, quiet
from smalti.hub.modules import TableEmbedding
from smalti.hub.opening import transformer_inside
from smalti.hub.plugin import FORMAT_VERSION
from smalti.hub.sealing import read_seal, seal


def save_model(
    model: Model,
    tokenizer: Any,
    directory: str | Path,
    *,
    card: str | None = None,
    source: str | Path | None = None,
    overwrite: bool = False,
    max_shard_size: str | int = "5GB",
) -> Path:
    """Save a model whose table was replaced, whole or not at all.

    ``AutoModel.from_pretrained`` opens the directory once ``smalti`` is imported, and so does
    ``SentenceTransformer`` if ``source`` was one of its directories.

    Args:
        model: A model that went through ``replace_table``.
        tokenizer: Its tokenizer, or ``None``.
        directory: Where to write. A directory that smalti wrote, and nobody added to, is
            replaced.
        card: The text of README.md; ``model_card(model)`` if not given.
        source: The directory the model came from, for what sentence-transformers needs; by
            default what the model itself remembers.
        overwrite: Replace whatever is there.
        max_shard_size: Larger models are cut into several files.

    Raises:
        ConfigError: The model has no compressed table.
        ArtifactError: The directory can't be written, or holds something else.
    """
    require(
        isinstance(input_embedding(model), TableEmbedding),
        f"{type(model).__name__} has no compressed table: call replace_table first",
    )
    place = as_path(directory)
    origin = _origin(source if source is not None else model.config.name_or_path)
    with draft_of(place, lambda there: overwrite or is_ours(there)) as draft, quiet():
        if origin is not None:
            _copy_companions(origin, draft)
        try:
            model.save_pretrained(draft, max_shard_size=max_shard_size)
        except SafetensorError as error:
            # How safetensors says that the disk is full.
            raise ArtifactError(f"can't write {place}: {error}") from error
        if tokenizer is not None:
            tokenizer.save_pretrained(draft)
        text = model_card(model) if card is None else card
        (draft / "README.md").write_text(text, encoding="utf-8")
        config = json.loads((draft / "config.json").read_text(encoding="utf-8"))
        seal_files(draft, {"spec": digest_of(config["quantization_config"])})
    return place


def check_free(place: Path, overwrite: bool = False, needed: Iterable[Path] = ()) -> None:
    """Refuse a directory that :func:`save_model` would refuse, before work is put into it.

    Args:
        place: Where a model shall be saved.
        overwrite: Whether what is there may be replaced.
        needed: What must not be lost when it is.
    """
    try:
        there = place.exists()
        free = not there or (place.is_dir() and (overwrite or is_ours(place)))
        lost = [path for path in needed if there and path.resolve().is_relative_to(place)]
        above = next(parent for parent in place.parents if parent.exists())
        writable = above.is_dir() and os.access(above, os.W_OK)
    except OSError as error:
        raise ArtifactError(f"can't write {place}: {error}") from error
    require(
        free,
        f"{place} holds something else: choose another place, or ask to overwrite it",
        ArtifactError,
    )
    require(
        not lost,
        f"writing {place} would remove {', '.join(map(str, lost))}: choose another place",
        ArtifactError,
    )
    require(writable, f"can't write {place}: no files can be made in {above}", ArtifactError)


def _origin(source: str | Path | None) -> Path | None:
    """The directory a model came from, if it came from one; links to its inner part count."""
    place = Path(source) if source else None
    if place is None or not place.is_dir():
        return None
    outer = place.resolve().parent
    is_inner = (outer / "modules.json").is_file() and transformer_inside(outer) == place.resolve()
    return outer if is_inner else place


def _copy_companions(origin: Path, draft: Path) -> None:
    """Copy the licence, and what sentence-transformers needs besides the transformer."""
    for licence in origin.glob("LICENSE*"):
        if licence.is_file():
            shutil.copy(licence, draft)
    if not (origin / "modules.json").is_file():
        return
    inner = transformer_inside(origin)
    modules = json.loads((origin / "modules.json").read_text(encoding="utf-8"))
    for module in modules:
        path = origin / module["path"]
        require(
            path.resolve().is_relative_to(origin.resolve()),
            f"modules.json of {origin} names {module['path']!r}, which lies outside of it",
            ArtifactError,
        )
        if path.resolve() == inner.resolve():
            module["path"] = ""  # the transformer moves to the top, where every loader looks
        elif path.is_dir():
            shutil.copytree(path, draft / module["path"])
    (draft / "modules.json").write_text(json.dumps(modules, indent=2), encoding="utf-8")
    settings = [origin / "config_sentence_transformers.json", *inner.glob("sentence_*_config.json")]
    for file in settings:
        if file.is_file():
            shutil.copy(file, draft)


def seal_files(draft: Path, content: Mapping[str, Any]) -> None:
    """Seal all weights of a directory; each knows the directory's files and who wrote them."""
    files = sorted(str(file.relative_to(draft)) for file in draft.rglob("*") if file.is_file())
    note = {
        "format_version": FORMAT_VERSION,
        "files": files,
        "versions": versions("transformers"),
        **content,
    }
    for file in draft.glob("*.safetensors"):
        seal(file, note)


def is_ours(directory: Path) -> bool:
    """Whether a directory is empty, or was written by smalti with nothing added since."""
    present = {str(f.relative_to(directory)) for f in directory.rglob("*") if f.is_file()}
    if is_page(directory / PAGE):
        present.discard(PAGE)
    try:
        seals = [read_seal(file) for file in directory.glob("*.safetensors")]
        written = [set(note["files"]) for note in seals if note is not None]
    except (SmaltiError, KeyError, TypeError):
        return False
    return not present or any(present <= files for files in written)


def digest_of(content: Mapping[str, Any]) -> str:
    """A checksum of JSON data."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
