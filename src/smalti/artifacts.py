"""Directories that describe and check themselves: a manifest and safetensors, never pickle.

A directory is written beside its place and moved there in one step: a process that is
killed leaves the old artifact or the new one, never a mixture.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smalti import __version__
from smalti.errors import ArtifactError, require

if TYPE_CHECKING:
    from torch import Tensor

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
TENSORS = "tensors.safetensors"
# The page about an artifact that may stand beside its files, and what such pages begin with.
PAGE = "report.html"
PAGE_MARK = '<meta name="generator" content="smalti">'


@dataclass(frozen=True)
class Artifact:
    """What a directory holds.

    Args:
        kind: Which part of smalti made it, such as ``"quantizer"``.
        spec: The settings from which it is built.
        tensors: Its numbers, by name.
        sizes: Bytes of each tensor, by name.
        origin: Where it came from, in free words.
        versions: The libraries it was written with.
    """

    kind: str
    spec: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    sizes: Mapping[str, int]
    origin: str
    versions: Mapping[str, str]


def write_artifact(
    directory: str | Path,
    kind: str,
    spec: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    origin: str = "",
) -> None:
    """Write an artifact; an older artifact at that place is replaced, anything else is not."""
    from safetensors import SafetensorError  # noqa: PLC0415  (light import of this module)
    from safetensors.torch import save_file  # noqa: PLC0415

    place = as_path(directory)
    with draft_of(place, _is_replaceable) as draft:
        plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        try:
            save_file(plain, draft / TENSORS)
        except SafetensorError as error:  # So it says that a disk is full.
            raise ArtifactError(f"can't write {place}: {error}") from error
        manifest = {
            "format_version": FORMAT_VERSION,
            "kind": kind,
            "spec": spec,
            "sizes": {name: tensor.nbytes for name, tensor in plain.items()},
            "origin": origin,
            "versions": versions(),
            "sha256": {TENSORS: _digest(draft / TENSORS)},
        }
        manifest["checksum"] = _checksum(manifest)
        text = json.dumps(manifest, indent=2, sort_keys=True)
        (draft / MANIFEST).write_text(text + "\n", encoding="utf-8")


@contextmanager
def draft_of(place: Path, is_replaceable: Callable[[Path], bool]) -> Iterator[Path]:
    """A new directory beside ``place`` that takes its name when the block ends well.

    Args:
        place: Where the directory shall be.
        is_replaceable: Whether nothing is lost when a directory that is there is replaced.
    """
    draft = place.parent / f".smalti-{secrets.token_hex(8)}"
    made: list[Path] = []
    try:
        require(
            not place.exists() or (place.is_dir() and is_replaceable(place)),
            f"{place} exists and is not a smalti artifact; choose a new directory or remove it",
            ArtifactError,
        )
        made = [parent for parent in place.parents if not parent.exists()]
        draft.mkdir(parents=True)
        yield draft
        # On the disk before the name is: a machine that stops leaves no name without content.
        for path in (*draft.rglob("*"), draft):
            _flush(path)
        _move_into_place(draft, place)
        _flush(place.parent)
    except OSError as error:
        raise ArtifactError(f"can't write {place}: {error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        for parent in made:
            with suppress(OSError):  # Those that hold the artifact now stay.
                parent.rmdir()


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all; one that is there is replaced. Text becomes UTF-8."""
    draft = path.with_name(f".smalti-{secrets.token_hex(8)}")
    try:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)
        _flush(draft)
        draft.replace(path)
    except OSError as error:
        raise ArtifactError(f"can't write {path}: {error}") from error
    finally:
        draft.unlink(missing_ok=True)


def check_directory(place: Path) -> None:
    """Refuse a place where no directory is."""
    require(place.exists(), f"there is no directory {place}", ArtifactError)
    require(place.is_dir(), f"expected a directory, got the file {place}", ArtifactError)


def read_manifest(directory: str | Path) -> dict[str, Any]:
    """The checked manifest of an artifact, its files' checksums included."""
    place = as_path(directory)
    path = place / MANIFEST
    try:
        check_directory(place)
        require(path.is_file(), f"{place} has no {MANIFEST}: not a smalti artifact", ArtifactError)
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArtifactError(f"can't read {place}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{path} is damaged, not JSON: {error}") from error
    require(isinstance(manifest, dict), f"{path} is damaged: not an object", ArtifactError)
    version = manifest.get("format_version")
    require(
        version == FORMAT_VERSION,
        f"{path} has format version {version!r}, this smalti reads {FORMAT_VERSION}; "
        "load it with the smalti that wrote it",
        ArtifactError,
    )
    require(
        manifest.get("checksum") == _checksum(manifest),
        f"{path} was changed after it was written; save the artifact again instead of editing it",
        ArtifactError,
    )
    for name, expected in manifest["sha256"].items():
        file = place / name
        require(file.is_file(), f"{file} is missing", ArtifactError)
        require(
            _digest(file) == expected,
            f"{file} is damaged: its SHA-256 is not the one in {MANIFEST}",
            ArtifactError,
        )
    return manifest


def read_artifact(directory: str | Path, kind: str) -> Artifact:
    """The checked content of an artifact of that kind."""
    from safetensors.torch import load_file  # noqa: PLC0415  (light import of this module)

    manifest = read_manifest(directory)
    require(
        manifest["kind"] == kind,
        f"{directory} holds a {manifest['kind']}, expected a {kind}",
        ArtifactError,
    )
    return Artifact(
        kind=kind,
        spec=manifest["spec"],
        tensors=load_file(Path(directory) / TENSORS),
        sizes=manifest["sizes"],
        origin=manifest["origin"],
        versions=manifest["versions"],
    )


def as_path(directory: str | Path) -> Path:
    """The place that a path names, links followed."""
    require(
        isinstance(directory, (str, Path)),
        f"expected the path of a directory, got {directory!r}",
        ArtifactError,
    )
    # Through links: the place itself is replaced, not a link to it.
    return Path(directory).resolve()


def _is_replaceable(place: Path) -> bool:
    """Whether nothing is lost by replacing a directory: it is empty, or ours and ours alone."""
    names = {path.name for path in place.iterdir()}
    try:
        manifest = json.loads((place / MANIFEST).read_text(encoding="utf-8")) if names else {}
    except (OSError, ValueError, RecursionError):
        return False
    ours = isinstance(manifest, dict) and {"format_version", "kind", "checksum"} <= manifest.keys()
    if is_page(place / PAGE):
        names.discard(PAGE)
    return not names or (ours and names <= {MANIFEST, *manifest.get("sha256", {})})


def is_page(path: Path) -> bool:
    """Whether a file is a page that smalti wrote, and can write again."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return PAGE_MARK in file.read(1000)
    except OSError:
        return False


def _move_into_place(draft: Path, place: Path) -> None:
    if not place.exists():
        draft.rename(place)
        return
    if not _exchange(draft, place):
        # Elsewhere than on Linux two names can't be exchanged in one step: between these
        # two lines the old artifact has its neighbour's name, and nothing is lost.
        old = draft.with_name(draft.name + ".old")
        place.rename(old)
        draft.rename(place)
        shutil.rmtree(old, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names atomically, where the system can."""
    if platform.system() != "Linux":
        return False
    swap = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    at_working_directory, exchange = -100, 2
    return (
        swap is not None
        and swap(
            at_working_directory,
            os.fsencode(one),
            at_working_directory,
            os.fsencode(other),
            exchange,
        )
        == 0
    )


def _flush(path: Path) -> None:
    """Wait until a file or a directory is on the disk, where the system lets one wait."""
    if path.is_dir() and os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksum(manifest: Mapping[str, Any]) -> str:
    content = {key: value for key, value in manifest.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def versions(*more: str) -> dict[str, str]:
    """The libraries that write a directory."""
    others = {name: metadata.version(name) for name in ("torch", "safetensors", "numpy", *more)}
    return {"python": platform.python_version(), "smalti": __version__, **others}
