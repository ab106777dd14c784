"""Coded symbols, read by a decoder that is written here from the definition of range coding."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest

from smalti.codec.frequencies import frequencies
from smalti.codec.symbols import Stream, SymbolReader, SymbolWriter
from smalti.errors import ArtifactError


def some_symbols(size: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Symbols and their frequencies, unlikely ones among them."""
    chance = np.random.default_rng(size)
    logits = chance.normal(size=(count, size)) * 3
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    symbols = (shares.cumsum(axis=1) < chance.random((count, 1))).sum(axis=1)
    symbols[:5] = shares[:5].argmin(axis=1)
    return symbols.clip(max=size - 1), frequencies(shares)


def plain_range_decoder(payload: bytes, counts: np.ndarray) -> list[int]:
    """Whole numbers of Python alone: 64 bits of state, words of 32, counts of 2^24."""
    words = itertools.chain((word for (word,) in struct.iter_unpack("<I", payload)), [0] * 4)
    mask = 2**64 - 1
    low, width, point = 0, mask, next(words) << 32 | next(words)
    found = []
    for row in counts:
        ends = [0, *itertools.accumulate(int(count) for count in row)]
        step = width >> 24
        target = ((point - low) & mask) // step
        symbol = next(number for number, end in enumerate(ends[1:]) if target < end)
        found.append(symbol)
        low, width = (low + step * ends[symbol]) & mask, step * int(row[symbol])
        if width < 2**32:
            low, width = (low << 32) & mask, width << 32
            point = (point << 32) & mask | next(words)
    return found


@pytest.mark.parametrize("size", [2, 3, 17, 256, 5000])
def test_the_frequencies_are_met_to_the_last_count(size: int) -> None:
    symbols, counts = some_symbols(size, count=200)
    writer = SymbolWriter()
    writer.put(symbols, counts)
    assert plain_range_decoder(writer.finish().payload, counts) == symbols.tolist()


def test_symbols_come_back_however_they_are_grouped() -> None:
    symbols, counts = some_symbols(40, count=300)
    writer = SymbolWriter()
    for part in np.split(np.arange(300), [1, 2, 100]):
        writer.put(symbols[part], counts[part])
    stream = writer.finish()
    reader = SymbolReader(stream, "the test")
    parts = [reader.take(counts[part]) for part in np.split(np.arange(300), [150, 299])]
    reader.finish()
    assert np.concatenate(parts).tolist() == symbols.tolist()
    whole = SymbolWriter()
    whole.put(symbols, counts)
    assert whole.finish() == stream


def test_the_payload_is_at_most_two_words_longer_than_promised() -> None:
    symbols, counts = some_symbols(100, count=500)
    writer = SymbolWriter()
    writer.put(symbols, counts)
    stream = writer.finish()
    promised = -np.log2(counts[np.arange(500), symbols] / 2**24).sum()
    assert stream.ideal_bits == pytest.approx(promised)
    assert promised <= 8 * len(stream.payload) < promised + 64


@pytest.mark.parametrize("change", [1, 1000])
def test_other_frequencies_in_reading_are_found_out(change: int) -> None:
    symbols, counts = some_symbols(20, count=400)
    symbols[7] = counts[7].argmax()
    writer = SymbolWriter()
    writer.put(symbols, counts)
    other = counts.copy()
    other[7, symbols[7]] -= change
    other[7, (symbols[7] + 1) % 20] += change
    reader = SymbolReader(writer.finish(), "block 3")

    def read() -> None:
        reader.take(other)
        reader.finish()

    with pytest.raises(ArtifactError, match=r"block 3 .* other probabilities"):
        read()


def test_half_a_word_is_refused() -> None:
    with pytest.raises(ArtifactError, match="damaged"):
        SymbolReader(Stream(b"abc", b"\0" * 8), "block 1")
