"""How much faster are codes drawn with the cache than without?

The prior of ``configs/depthwise-cifar10.yaml``, whose grids have 8 x 8 places and five codebooks.
Both ways must draw the same codes from one seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks.timing import Ratio, interleaved
from smalti.autoencoders import build_autoencoder
from smalti.priors import build_prior
from smalti.recipes.images import AutoencoderConfig, PriorSettings
from smalti.training import read_settings

CONFIG = Path(__file__).parent.parent / "configs" / "depthwise-cifar10.yaml"
# Grids drawn together, pairs of runs, the ratio wanted.
CASES = [(1, 3, 5), (16, 3, 5)]


def run() -> Iterator[Ratio]:
    torch.manual_seed(0)
    config = read_settings(AutoencoderConfig, CONFIG)
    assert isinstance(config.prior, PriorSettings)
    model = build_autoencoder(config.model)
    prior = build_prior(config.prior.model, level=(model.grids(32, 32)[0], model.code_sizes[0]))
    for count, pairs, wanted in CASES:

        def drawn(cached: bool, count: int = count) -> torch.Tensor:
            generator = torch.Generator().manual_seed(1)
            return prior.sample(count, generator=generator, cached=cached)

        if not torch.equal(drawn(True), drawn(False)):
            raise SystemExit("the cache changes what is drawn")
        medians = interleaved(lambda: drawn(True), lambda: drawn(False), pairs)
        question = f"draw {count} grid(s) of 8 x 8 x 5 codes"
        yield Ratio(question, "torch alone", *medians, "the same without the cache", "ms", wanted)
