"""How much faster are codes drawn with the cache than without?

The priors of the ready configs, on grids of 8 x 8 places with five codebooks of 64 codewords. Both
ways must draw the same codes from one seed. The smaller a prior and the fewer the grids, the more
counts what torch does around its sums, which a cache does not save.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch

from benchmarks.timing import Ratio, interleaved
from smalti.priors import Prior, build_prior
from smalti.recipes.images import AutoencoderConfig, PriorSettings
from smalti.training import read_settings

CONFIGS = Path(__file__).parent.parent / "configs"
LEVEL = ((8, 8), (64,) * 5)
# Whose prior, grids drawn together, pairs of runs, the ratio wanted.
CASES = [
    ("vq-cifar10", 1, 3, 5),
    ("depthwise-cifar10", 1, 3, 5),
    ("depthwise-cifar10", 16, 3, 5),
]


def run() -> Iterator[Ratio]:
    for name, count, pairs, wanted in CASES:
        config = read_settings(AutoencoderConfig, CONFIGS / f"{name}.yaml")
        assert isinstance(config.prior, PriorSettings)
        torch.manual_seed(0)
        prior = build_prior(config.prior.model, level=LEVEL)

        def drawn(cached: bool, count: int = count, prior: Prior = prior) -> torch.Tensor:
            generator = torch.Generator().manual_seed(1)
            return prior.sample(count, generator=generator, cached=cached)

        if not torch.equal(drawn(True), drawn(False)):
            raise SystemExit("the cache changes what is drawn")
        medians = interleaved(partial(drawn, True), partial(drawn, False), pairs)
        question = f"draw {count} grid(s) of 8 x 8 x 5 codes, prior of {name}"
        yield Ratio(question, "torch alone", *medians, "the same without the cache", "ms", wanted)
