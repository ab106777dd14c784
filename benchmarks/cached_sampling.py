"""How much faster are codes drawn with the cache than without?

Grids of 8 x 8 places with five codebooks, as the shipped configs have them. Both ways must draw
the same codes from one seed.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from benchmarks.timing import Ratio, interleaved
from smalti.priors import build_prior

# The largest prior of the ready configs for one grid; sizes of codebooks as in depthwise-cifar10.
PRIOR = {"prior": "autoregressive", "dim": 128, "depth": 4, "heads": 4}
LEVEL = ((8, 8), (64,) * 5)
# Grids drawn together, pairs of runs, the ratio wanted.
CASES = [(1, 3, 5), (16, 3, 5)]


def run() -> Iterator[Ratio]:
    torch.manual_seed(0)
    prior = build_prior(PRIOR, level=LEVEL)
    for count, pairs, wanted in CASES:

        def drawn(cached: bool, count: int = count) -> torch.Tensor:
            generator = torch.Generator().manual_seed(1)
            return prior.sample(count, generator=generator, cached=cached)

        if not torch.equal(drawn(True), drawn(False)):
            raise SystemExit("the cache changes what is drawn")
        medians = interleaved(lambda: drawn(True), lambda: drawn(False), pairs)
        question = f"draw {count} grid(s) of 8 x 8 x 5 codes"
        yield Ratio(question, "torch alone", *medians, "the same without the cache", "ms", wanted)
