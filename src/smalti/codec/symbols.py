"""Symbols become bytes and come back, each under its own integer frequencies: range coding.

Reference:
    Martin, "Range encoding: an algorithm for removing redundancy from a digitised message",
    1979. Bamler, "Understanding Entropy Coding With Asymmetric Numeral Systems (ANS): a
    Statistician's Perspective", 2022, arXiv:2201.01741 (the library constriction).

Differs from the paper:
    The library takes real-valued weights, gives every symbol one count and spreads the other
    counts by weight. The weights here are the frequencies less one: their sum is the number of
    the other counts, nothing is rounded, and the frequencies are met exactly.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np

from smalti.codec.extras import constriction
from smalti.codec.frequencies import PRECISION
from smalti.errors import ArtifactError, require

CHECK_BYTES = 8
WORD = np.dtype("<u4")


class Stream(NamedTuple):
    """Coded symbols."""

    payload: bytes
    """What the coder wrote."""
    check: bytes
    """The beginning of the SHA-256 of the symbols: right symbols are told from wrong ones."""
    ideal_bits: float = 0.0
    """What the frequencies promise; the payload is longer by at most a few bytes."""


class SymbolWriter:
    """Codes symbols, many at a time."""

    def __init__(self) -> None:
        self._coder = constriction().queue.RangeEncoder()
        self._family = constriction().model.Categorical(perfect=False)
        self._digest = hashlib.sha256()
        self._bits = 0.0

    def put(self, symbols: np.ndarray, frequencies: np.ndarray) -> None:
        """Code ``symbols`` ``(n,)`` under ``frequencies`` ``(n, size)``."""
        plain = np.ascontiguousarray(symbols, dtype=np.int32)
        self._coder.encode(plain, self._family, _weights(frequencies))
        self._digest.update(_plain_bytes(plain))
        chosen = frequencies[np.arange(len(plain)), plain]
        self._bits += float((PRECISION - np.log2(chosen)).sum())

    def finish(self) -> Stream:
        """All that was put."""
        words = self._coder.get_compressed().astype(WORD)
        return Stream(words.tobytes(), self._digest.digest()[:CHECK_BYTES], self._bits)


class SymbolReader:
    """Reads back what a writer coded, given the same frequencies in the same order.

    Args:
        stream: What the writer made.
        where: What the stream is, for messages.
    """

    def __init__(self, stream: Stream, where: str) -> None:
        self.where, self._check = where, stream.check
        require(
            len(stream.payload) % WORD.itemsize == 0,
            f"{where} is damaged: {len(stream.payload)} bytes are no whole number of words",
            ArtifactError,
        )
        words = np.frombuffer(stream.payload, WORD).astype(np.uint32)
        self._coder = constriction().queue.RangeDecoder(words)
        self._family = constriction().model.Categorical(perfect=False)
        self._digest = hashlib.sha256()

    def take(self, frequencies: np.ndarray) -> np.ndarray:
        """The next symbols ``(n,)`` under ``frequencies`` ``(n, size)``."""
        try:
            symbols: np.ndarray = self._coder.decode(self._family, _weights(frequencies))
        except (AssertionError, ValueError) as error:
            raise ArtifactError(self._wrong()) from error
        self._digest.update(_plain_bytes(symbols))
        return symbols

    def finish(self) -> None:
        """Refuse symbols that are not those of the writer."""
        same = self._digest.digest()[:CHECK_BYTES] == self._check
        require(same, self._wrong(), ArtifactError)

    def _wrong(self) -> str:
        return (
            f"{self.where} can't be decoded: the bytes are whole, but this machine computes "
            "other probabilities than the one that wrote them; decode with the same version of "
            "torch on the same kind of machine"
        )


def _weights(frequencies: np.ndarray) -> np.ndarray:
    # Exact: whole numbers below 2^24.
    return (frequencies - 1).astype(np.float32)


def _plain_bytes(symbols: np.ndarray) -> bytes:
    return symbols.astype("<i4", copy=False).tobytes()
