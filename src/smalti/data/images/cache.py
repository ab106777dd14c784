"""Decoded images kept on disk: used while the source is the same, made anew when it is not.

The folder is the one that SMALTI_CACHE names, or smalti's in the user's folder for caches.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from smalti.artifacts import MANIFEST, TENSORS, read_artifact, write_artifact
from smalti.data.images.collection import Images
from smalti.errors import ArtifactError, SmaltiError, require

VARIABLE = "SMALTI_CACHE"
KIND = "images"
# A part of every key: what older ways of decoding left behind is not used.
DECODING = 1


def cache_folder() -> Path:
    """Where decoded images are kept."""
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE])
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "smalti"


def stamp_of(files: Iterable[Path], *more: str) -> str:
    """A digest of the files' names, times and sizes, and of other words that matter."""
    digest = hashlib.sha256(json.dumps(more).encode())
    for file in files:
        state = file.stat()
        digest.update(json.dumps([str(file), state.st_mtime_ns, state.st_size]).encode())
    return digest.hexdigest()


def cached(key: Mapping[str, Any], stamp: str, source: str, make: Callable[[], Images]) -> Images:
    """Images from the cache, or made and kept there.

    A cache that is stale or damaged is made anew, and one that can't be written is done
    without, both silently: images are the same either way.

    Args:
        key: What the images are: the source and how it is read.
        stamp: The state of the source; see :func:`stamp_of`.
        source: Where they came from, as it was asked for this time.
        make: Reads the source.
    """
    name = hashlib.sha256(json.dumps({**key, "decoding": DECODING}, sort_keys=True).encode())
    place = cache_folder() / KIND / name.hexdigest()[:32]
    kept = _kept(place, stamp, source)
    if kept is not None:
        return kept
    images = make()
    _keep(images, place, stamp)
    return images


def _kept(place: Path, stamp: str, source: str) -> Images | None:
    """What is there, if it is whole and of that stamp."""
    try:
        found = read_artifact(place, KIND)
        require(found.spec["stamp"] == stamp, f"{place} is stale", ArtifactError)
        labels = found.tensors.get("labels")
        return Images(found.tensors["pixels"], found.spec["bits"], labels, source)
    except (SmaltiError, SafetensorError, OSError, KeyError, TypeError):
        return None


def _keep(images: Images, place: Path, stamp: str) -> None:
    tensors = {"pixels": images.pixels}
    if images.labels is not None:
        tensors["labels"] = images.labels
    spec = {"stamp": stamp, "bits": images.bits}
    try:
        if place.is_dir() and {file.name for file in place.iterdir()} <= {MANIFEST, TENSORS}:
            shutil.rmtree(place)  # A damaged manifest would forbid to replace it.
        write_artifact(place, KIND, spec, tensors, origin=images.source)
    except (ArtifactError, SafetensorError, OSError):
        return
