"""How long a sentence takes by itself, and how many a second come out of batches."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from smalti.data import padded
from smalti.progress import progress_bar
from smalti.translation import Decoding, Translator

WARM_UP = 5
TOGETHER = 32


@dataclass(frozen=True)
class Latency:
    """The time of a way of translating, reading of the source included.

    Args:
        milliseconds: Of a sentence by itself, the median.
        sentences_per_second: In batches of 32 of like lengths.
    """

    milliseconds: float
    sentences_per_second: float

    def as_dict(self) -> dict[str, float]:
        """Plain data."""
        return asdict(self)


def latencies(
    translator: Translator, sources: Sequence[Sequence[int]], ways: Mapping[str, Decoding]
) -> dict[str, Latency]:
    """Time several ways of translating by turns, so that a busy machine slows all of them.

    Args:
        translator: The model.
        sources: Numbers of the tokens of sentences.
        ways: By name.
    """
    alone: dict[str, list[float]] = {name: [] for name in ways}
    batched = dict.fromkeys(ways, 0.0)
    single = [padded([ids]) for ids in sources]
    ordered = sorted(sources, key=len)
    batches = [padded(ordered[i : i + TOGETHER]) for i in range(0, len(ordered), TOGETHER)]
    with progress_bar("timing", "sentences", total=2 * len(sources)) as advance:
        for options in ways.values():
            for source in single[:WARM_UP]:
                translator.translate(source, options)
        for source in single:
            for name, options in ways.items():
                began = time.perf_counter()
                translator.translate(source, options)
                alone[name].append(time.perf_counter() - began)
            advance(1)
        for source in batches:
            for name, options in ways.items():
                began = time.perf_counter()
                translator.translate(source, options)
                batched[name] += time.perf_counter() - began
            advance(len(source))
    return {
        name: Latency(1000 * statistics.median(alone[name]), len(sources) / batched[name])
        for name in ways
    }
