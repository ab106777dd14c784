"""Loads a saved model after checking it, and says what a directory holds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from smalti.artifacts import as_path, check_directory
from smalti.embeddings import CodedTable, CompressedEmbedding
from smalti.embeddings.base import BLOCK_ROWS
from smalti.errors import ArtifactError, SmaltiError, require
from smalti.hub.card import FLOAT32
from smalti.hub.filling import built
from smalti.hub.groups import input_embedding
from smalti.hub.kinds import class_for, kind_of
from smalti.hub.library import Model, quiet
from smalti.hub.modules import device_of
from smalti.hub.plugin import INPUT, METHOD, SmaltiConfig, check_config
from smalti.hub.saving import digest_of
from smalti.hub.sealing import check_seal, read_header

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"


def load_model(directory: str | Path, *, kind: str | None = None, **settings: Any) -> Model:
    """Load a model that was saved with a compressed table, and check it.

    Unlike ``AutoModel.from_pretrained`` it compares every tensor with its checksum, and looks
    at every code.

    Args:
        directory: What ``save_model`` or ``save_pretrained`` wrote; the latter has no
            checksums.
        kind: Open it as another kind than it was saved as: ``"encoder"``, ``"masked"``,
            ``"causal"``, ``"seq2seq"`` or ``"classifier"``.
        **settings: For ``from_pretrained``, such as ``dtype``.

    Returns:
        The model, in evaluation.

    Raises:
        ArtifactError: The directory is damaged, foreign or of another version.
    """
    place = as_path(directory)
    config, _ = checked_directory(place)
    opener = class_for(config.get("architectures"), kind)
    try:
        with quiet():
            model = opener.from_pretrained(place, **settings)
    except SmaltiError as error:
        raise ArtifactError(f"{place}: {error}") from error
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ArtifactError(f"{place} can't be loaded: {reason[0]}") from error
    _check_codes(place, input_embedding(model).table)
    return model.eval()


def read_info(directory: str | Path) -> dict[str, Any]:
    """What a saved model's directory holds, after checking its files."""
    place = as_path(directory)
    config, note = checked_directory(place)
    own = SmaltiConfig(**config["quantization_config"])
    table = _built(place, own)
    weights = sum(read_header(file).bytes for file in weight_files(place))
    size = table.size()
    dense = table.rows * table.dim * FLOAT32
    return {
        "directory": str(place),
        "kind": "model",
        "format_version": own.format_version,
        "architecture": (config.get("architectures") or [""])[0],
        "task": kind_of(config.get("architectures")),
        "table": own.tables[INPUT],
        "places": own.places.get(INPUT, []),
        "sizes": size.as_dict(),
        "dense_bytes": dense,
        "ratio": round(dense / size.total, 2),
        "model_bytes": weights,
        "origin": own.origin,
        "versions": note.get("versions", {}),
        "checksums": "right" if note else "none",
    }


def checked_directory(place: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The configuration of a saved model and its seal, after checking all of its weights.

    The seal is empty where the model was saved without one.
    """
    check_directory(place)
    config = read_json(place / "config.json")
    quantization: Any = config.get("quantization_config")
    require(
        isinstance(quantization, Mapping) and quantization.get("quant_method") == METHOD,
        f"{place} is not a model with a compressed table: its config.json names no smalti table",
        ArtifactError,
    )
    own = SmaltiConfig(**quantization)
    try:
        check_config(own)
    except ArtifactError as error:
        raise ArtifactError(f"{place / 'config.json'}: {error}") from error
    _built(place, own)
    notes = [check_seal(file) for file in weight_files(place)]
    for note in notes:
        require(
            note is None or note.get("spec") == digest_of(quantization),
            f"{place / 'config.json'} was changed: its quantization_config is not the one that "
            "was saved",
            ArtifactError,
        )
    return config, notes[0] or {}


def weight_files(place: Path) -> list[Path]:
    """The files that hold a model's tensors; all are there, and hold what the index says."""
    if (place / SINGLE).is_file():
        return [place / SINGLE]
    require((place / INDEX).is_file(), f"{place / SINGLE} is missing", ArtifactError)
    names: Any = read_json(place / INDEX).get("weight_map")
    require(
        isinstance(names, Mapping) and len(names) > 0,
        f"{place / INDEX} is damaged: it has no weight_map",
        ArtifactError,
    )
    files = [place / file for file in sorted(set(names.values()))]
    for file in files:
        require(file.is_file(), f"{file} is missing", ArtifactError)
        inside = read_header(file).tensors.keys()
        odd = inside ^ {name for name, home in names.items() if home == file.name}
        require(
            not odd,
            f"{place / INDEX} does not fit {file.name}: {', '.join(sorted(odd))}",
            ArtifactError,
        )
    return files


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file."""
    require(path.is_file(), f"{path} is missing", ArtifactError)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArtifactError(f"can't read {path}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{path} is damaged, not JSON: {error}") from error
    require(isinstance(content, dict), f"{path} is damaged: not an object", ArtifactError)
    return dict(content)


def _built(place: Path, config: SmaltiConfig) -> CompressedEmbedding:
    try:
        return built(config)
    except SmaltiError as error:
        raise ArtifactError(
            f"{place / 'config.json'} describes a table that can't be built: {error}"
        ) from error


@torch.no_grad()
def _check_codes(place: Path, table: CompressedEmbedding) -> None:
    """Look at every code and decode every row, some at a time."""
    for part in (part for part in table.modules() if isinstance(part, CodedTable)):
        for ids in _blocks(part):
            highest = int(part.take_codes(ids).max())
            require(
                highest < part.codebook_size,
                f"the table in {place} is damaged: expected codes below {part.codebook_size}, "
                f"got {highest}",
                ArtifactError,
            )
    try:
        finite = all(bool(torch.isfinite(table(ids)).all()) for ids in _blocks(table))
    except (SmaltiError, IndexError, RuntimeError) as error:
        raise ArtifactError(f"the table in {place} is damaged: {error}") from error
    require(finite, f"the table in {place} has numbers that are not finite", ArtifactError)


def _blocks(table: CompressedEmbedding) -> Sequence[Tensor]:
    blocks: Sequence[Tensor] = torch.arange(table.rows, device=device_of(table)).split(BLOCK_ROWS)
    return blocks
