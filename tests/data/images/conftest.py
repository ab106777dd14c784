"""A cache of its own for each test, and small files in the formats of real sets."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of decoded images."""
    place = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("SMALTI_CACHE", str(place))
    return place


@pytest.fixture
def noise() -> Callable[..., Array]:
    """Random whole numbers of a shape, the same ones for the same seed."""

    def make(*shape: int, seed: int = 0, below: int = 256, kind: str = "uint8") -> Array:
        return np.random.default_rng(seed).integers(0, below, shape).astype(kind)

    return make


@pytest.fixture
def picture_file() -> Callable[..., Path]:
    """Writes an array (height, width) or (height, width, channels) as a picture."""
    image = pytest.importorskip("PIL.Image")

    def write(path: Path, array: Array, **settings: Any) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        image.fromarray(array).save(path, **settings)
        return path

    return write


@pytest.fixture
def idx_bytes() -> Callable[[Array], bytes]:
    """An array of uint8 in the format of MNIST."""

    def make(array: Array) -> bytes:
        head = struct.pack(">BBBB", 0, 0, 8, array.ndim)
        return head + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()

    return make
