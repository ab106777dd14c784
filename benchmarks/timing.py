"""Ratios that mean something on a noisy machine: interleaved, in one process, medians."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from smalti.quantizers import native


@dataclass(frozen=True)
class Ratio:
    """How many times faster (or smaller) we are than the peer.

    Args:
        question: What was measured.
        way: ``"torch alone"`` or ``"with fast"``.
        ours: Our median, in ``unit``.
        peer: The peer's median.
        peer_name: Who that is.
        unit: Of both.
        wanted: The ratio that we hold ourselves to.
    """

    question: str
    way: str
    ours: float
    peer: float
    peer_name: str
    unit: str
    wanted: float

    @property
    def ratio(self) -> float:
        """The peer's figure over ours: above 1 we are better."""
        return self.peer / self.ours


def interleaved(ours: Callable[[], object], peer: Callable[[], object], pairs: int) -> list[float]:
    """The medians of both in milliseconds, one run of each in turn, after one to warm up."""
    ours()
    peer()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(pairs):
        for call, record in zip((ours, peer), times, strict=True):
            start = time.perf_counter()
            call()
            record.append(1000 * (time.perf_counter() - start))
    return [statistics.median(record) for record in times]


@contextlib.contextmanager
def way(name: str) -> Iterator[None]:
    """Search with torch alone, or with the compiled loops of the extra ``fast``."""
    real = native.available
    if name == "torch alone":
        native.available = lambda: False  # type: ignore[assignment]
    elif not real():
        raise SystemExit("the extra 'fast' is not installed: pip install 'smalti[fast]'")
    try:
        yield
    finally:
        native.available = real
