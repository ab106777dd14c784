"""How long a sentence takes by itself, and how many a second come out of batches."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from smalti.data import padded
from smalti.layers.remade import settled
from smalti.progress import progress_bar
from smalti.recipes.translation.saved_run import TranslationRun
from smalti.translation import Decoding

WARM_UP = 5
TOGETHER = 32
# Who serves sentences has one model at hand, whose weights stay in the processor's caches; turns
# of one sentence each would measure how they get there.
TURN = 10
# Long sentences are timed apart; those of forty words are made of several in a row.
LONG, JOINED = 20, 40

Way = tuple[TranslationRun, Decoding]


@dataclass(frozen=True)
class Latency:
    """The time of a way of translating, reading of the source included.

    Args:
        milliseconds: Of a sentence by itself, the median.
        sentences_per_second: In batches of 32 of like lengths.
        long_milliseconds: The median of texts with so many words and more, where there are any.
    """

    milliseconds: float
    sentences_per_second: float
    long_milliseconds: Mapping[int, float]

    def as_dict(self) -> dict[str, object]:
        """Plain data."""
        return asdict(self)


def latencies(ways: Mapping[str, Way], texts: Sequence[str], timed: int) -> dict[str, Latency]:
    """Time several ways of translating by turns, so that a busy machine slows all of them.

    Args:
        ways: By name; they may be of several models.
        texts: Sentences.
        timed: How many of them are timed, and of the long ones.
    """
    there = [text for text in texts if text.strip()]
    long = {
        LONG: [text for text in there if len(text.split()) >= LONG][:timed],
        JOINED: joined(there, JOINED)[:timed],
    }
    short = there[:timed]
    total = 2 * len(short) + sum(map(len, long.values()))
    # As whoever serves sentences one by one would.
    with settled(), progress_bar("timing", "sentences", total=total) as advance:
        by_length = {
            words: _alone(ways, group, advance) for words, group in {0: short, **long}.items()
        }
        batched = _together(ways, short, advance)
    return {
        name: Latency(
            by_length[0][name],
            len(short) / batched[name],
            {words: by_length[words][name] for words, group in long.items() if group},
        )
        for name in ways
    }


def joined(texts: Sequence[str], words: int) -> list[str]:
    """Texts put together in their order, each of so many words at least; the rest is left out.

    Example:
        >>> joined(["a b", "c", "d e f", "g"], 3)
        ['a b c', 'd e f']
    """
    found: list[str] = []
    parts: list[str] = []
    for text in texts:
        parts += text.split()
        if len(parts) >= words:
            found.append(" ".join(parts))
            parts = []
    return found


def _alone(
    ways: Mapping[str, Way], texts: Sequence[str], advance: Callable[[int], None]
) -> dict[str, float]:
    """The median milliseconds of a text by itself."""
    if not texts:
        return {}
    sources = {
        name: [padded([ids]) for ids in run.subwords.encode(texts)]
        for name, (run, _) in ways.items()
    }
    took: dict[str, list[float]] = {name: [] for name in ways}
    for name, (run, options) in ways.items():
        for source in sources[name][:WARM_UP]:
            run.translator.translate(source, options)
    for first in range(0, len(texts), TURN):
        places = range(first, min(first + TURN, len(texts)))
        for name, (run, options) in ways.items():
            for place in places:
                began = time.perf_counter()
                run.translator.translate(sources[name][place], options)
                took[name].append(time.perf_counter() - began)
        advance(len(places))
    return {name: 1000 * statistics.median(times) for name, times in took.items()}


def _together(
    ways: Mapping[str, Way], texts: Sequence[str], advance: Callable[[int], None]
) -> dict[str, float]:
    """The seconds of all texts in batches."""
    ordered = {name: sorted(run.subwords.encode(texts), key=len) for name, (run, _) in ways.items()}
    took = dict.fromkeys(ways, 0.0)
    for first in range(0, len(texts), TOGETHER):
        for name, (run, options) in ways.items():
            source = padded(ordered[name][first : first + TOGETHER])
            began = time.perf_counter()
            run.translator.translate(source, options)
            took[name] += time.perf_counter() - began
        advance(len(texts[first : first + TOGETHER]))
    return took
