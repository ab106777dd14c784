"""Checksums of all tensors, kept in the metadata of safetensors files.

Any reader of safetensors opens a sealed file; ours notices when a tensor was changed, and
says which.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from smalti.errors import ArtifactError, require

KEY = "smalti"
PIECE = 1 << 20


@dataclass(frozen=True)
class Header:
    """The beginning of a safetensors file.

    Args:
        tensors: For each tensor ``dtype``, ``shape`` and ``data_offsets``.
        metadata: Words that were saved with them.
        start: Where in the file the numbers begin.
    """

    tensors: Mapping[str, Any]
    metadata: Mapping[str, str]
    start: int

    @property
    def bytes(self) -> int:
        """Bytes of all numbers."""
        return max((entry["data_offsets"][1] for entry in self.tensors.values()), default=0)


def seal(path: Path, content: Mapping[str, Any]) -> None:
    """Write ``content`` and the checksums of all tensors into a file's metadata."""
    header = read_header(path)
    sealed = path.with_name(path.name + ".sealed")
    with path.open("rb") as old, sealed.open("wb") as new:
        note = {**content, "sha256": _digests(old, header)}
        metadata = {**header.metadata, KEY: json.dumps(note, sort_keys=True)}
        text = json.dumps({"__metadata__": metadata, **header.tensors}).encode()
        text += b" " * (-len(text) % 8)
        new.write(len(text).to_bytes(8, "little") + text)
        old.seek(header.start)
        shutil.copyfileobj(old, new, PIECE)
    sealed.replace(path)


def read_seal(path: Path) -> dict[str, Any] | None:
    """What was written by :func:`seal`, ``None`` if nothing was; the tensors are not read."""
    text = read_header(path).metadata.get(KEY)
    if text is None:
        return None
    try:
        note: dict[str, Any] = json.loads(text)
        note["sha256"].items()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArtifactError(f"{path} is damaged: its checksums can't be read") from error
    return note


def check_seal(path: Path) -> dict[str, Any] | None:
    """As :func:`read_seal`, after comparing all tensors with their checksums."""
    note = read_seal(path)
    if note is None:
        return None
    with path.open("rb") as file:
        found = _digests(file, read_header(path))
    for name, digest in note["sha256"].items():
        require(name in found, f"{path} is damaged: it lacks the tensor {name}", ArtifactError)
        require(
            found[name] == digest,
            f"{path} is damaged: the tensor {name} is not the one that was saved",
            ArtifactError,
        )
    more = sorted(found.keys() - note["sha256"].keys())
    require(not more, f"{path} was changed: {', '.join(more)} was added", ArtifactError)
    return note


def read_header(path: Path) -> Header:
    """The checked beginning of a safetensors file."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            require(8 + length <= size, f"{path} is damaged: it is cut short", ArtifactError)
            content = json.loads(file.read(length))
        metadata = content.pop("__metadata__", {})
        header = Header(content, metadata, 8 + length)
        for name, entry in content.items():
            first, last = entry["data_offsets"]
            require(
                0 <= first <= last and isinstance(entry["dtype"], str),
                f"{path} is damaged: the tensor {name} has no place",
                ArtifactError,
            )
    except OSError as error:
        raise ArtifactError(f"can't read {path}: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArtifactError(f"{path} is damaged: its header can't be read") from error
    require(
        header.start + header.bytes == size,
        f"{path} is damaged: it has {size} bytes, its header asks for "
        f"{header.start + header.bytes}",
        ArtifactError,
    )
    return header


def _digests(file: BinaryIO, header: Header) -> dict[str, str]:
    """SHA-256 of every tensor, its type and shape included."""
    found = {}
    for name, entry in header.tensors.items():
        first, last = entry["data_offsets"]
        digest = hashlib.sha256(f"{entry['dtype']} {entry['shape']}\n".encode())
        file.seek(header.start + first)
        for left in range(last - first, 0, -PIECE):
            digest.update(file.read(min(left, PIECE)))
        found[name] = digest.hexdigest()
    return found
