"""Pickles of plain data, read without running what they ask for.

A pickle names functions to call. Here it gets none: the few names that arrays of numbers need
stand for classes of this file, which only keep what they are given, and every other name is
refused. NumPy sees shapes and bytes when all has been read, and checks them.
"""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np

from smalti.data.images.arrays import Array
from smalti.errors import DataError

PLAIN_NUMBER = re.compile(r"[biu][1248]")


def load_plain(path: Path) -> Any:
    """What a pickle holds: dictionaries, lists, text, bytes, numbers and arrays of whole numbers.

    Text that Python 2 wrote comes as bytes.
    """
    try:
        with path.open("rb") as file:
            return _plain(_Unpickler(file, encoding="bytes").load())
    except OSError as error:
        raise DataError(f"can't read {path}: {error}") from error
    except _RefusedError as error:
        raise DataError(
            f"{path} asks for {error}, which is no plain data; it is not read"
        ) from error
    except Exception as error:  # A damaged pickle raises almost anything.
        raise DataError(f"{path} is no pickle of plain data, or damaged: {error}") from error


class _RefusedError(Exception):
    """A pickle wants something else than plain data."""


class _Type:
    """Stands for ``numpy.dtype``."""

    def __init__(self, code: str | bytes, *_: Any) -> None:
        self.code, self.order = _text(code), "|"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = _text(state[1])

    def numpy(self) -> np.dtype[Any]:
        if not PLAIN_NUMBER.fullmatch(self.code):
            raise _RefusedError(f"numbers of type {self.code!r}")
        return np.dtype(self.order + self.code)


class _Array:
    """Stands for an array, whichever way it was written."""

    def __init__(self, *_: Any) -> None:
        self.shape: tuple[int, ...] = ()
        self.type, self.order, self.content = _Type("u1"), "C", b""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, self.shape, self.type, fortran, self.content = state
        self.order = "F" if fortran else "C"

    def numpy(self) -> Array:
        content = np.frombuffer(self.content, self.type.numpy())
        return content.reshape(self.shape, order="F" if self.order == "F" else "C")


def _from_buffer(content: bytes, number: _Type, shape: tuple[int, ...], order: str) -> _Array:
    """Stands for ``_frombuffer`` of NumPy, by which pickles of protocol 5 make arrays."""
    array = _Array()
    array.content, array.type, array.shape, array.order = content, number, shape, order
    return array


def _encoded(text: str, encoding: str) -> bytes:
    """Stands for ``_codecs.encode``, by which Python 3 writes bytes for Python 2."""
    if encoding != "latin1":
        raise _RefusedError(f"bytes in {encoding!r}")
    return text.encode("latin1")


# NumPy's private part is called ``core`` in old pickles and ``_core`` in new ones.
STAND_INS: dict[tuple[str, str], Any] = {
    ("_codecs", "encode"): _encoded,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Type,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy.core.numeric", "_frombuffer"): _from_buffer,
    ("numpy._core.numeric", "_frombuffer"): _from_buffer,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return STAND_INS[module, name]
        except KeyError:
            raise _RefusedError(f"{module}.{name}") from None


def _plain(value: Any) -> Any:
    """With arrays in the places of what stands for them."""
    if isinstance(value, _Array):
        return value.numpy()
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (str, bytes, int, float)):
        return value
    raise _RefusedError(f"an object of {type(value).__name__}")


def _text(word: str | bytes) -> str:
    return word.decode("latin1") if isinstance(word, bytes) else str(word)
