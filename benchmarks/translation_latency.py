"""How much sooner is a sentence translated through latents than token by token?

Weights are random, and nobody ends a sentence before its length is reached, so that all write
equally many tokens; what is measured is time alone. Sentences are as long as captions, as
captions of twenty words and more, and as several of them in a row.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch

from benchmarks.timing import Ratio, interleaved
from smalti.layers.remade import settled
from smalti.translation import Autoregressive, Decoding, Latent, Translator
from smalti.translation.ids import EOS, MARKS

VOCABULARY = 6000
# Of the configs for Multi30k.
NETWORK: dict[str, Any] = {"dim": 192, "depth": 4, "ratio": 2}
LATENT: dict[str, Any] = {**NETWORK, "decoder_depth": 2, "predictor_depth": 1}
# Tokens of a source, its end included, and of its translation.
LENGTHS = {"a caption": 16, "a caption of 20 words and more": 27, "40 words and more": 56}
# Against greedy and against beam search, by how often the target's length is halved.
WANTED = {2: (2.0, 3.0), 3: (3.0, 4.5), 4: (3.3, 5.0)}
BATCH = 32


def run() -> Iterator[Ratio]:
    torch.manual_seed(1)
    teacher = _endless(Autoregressive(VOCABULARY, decoder_depth=4, **NETWORK))
    peers = {"greedy": Decoding(), "beam 4": Decoding(beam=4)}
    for halvings, wanted in WANTED.items():
        bottleneck = {"quantizer": "vector", "codebook_size": 256}
        model = _endless(Latent(VOCABULARY, quantizer=bottleneck, compressions=halvings, **LATENT))
        for name, length in LENGTHS.items():
            pairs = 40 if length < 20 else 15
            for (peer, options), least in zip(peers.items(), wanted, strict=True):
                ours = _translating(model, Decoding(), length, 1)
                theirs = _translating(teacher, options, length, 1)
                with settled():
                    medians = interleaved(ours, theirs, pairs)
                question = f"{name}, {halvings} halvings, one sentence"
                yield Ratio(question, "torch alone", *medians, peer, "ms", wanted=least)
        for peer, options in peers.items():
            ours = _translating(model, Decoding(), LENGTHS["a caption"], BATCH)
            theirs = _translating(teacher, options, LENGTHS["a caption"], BATCH)
            with settled():
                medians = interleaved(ours, theirs, 5)
            question = f"a caption, {halvings} halvings, {BATCH} sentences at once"
            yield Ratio(question, "torch alone", *medians, peer, "ms", wanted=1.0)


@torch.no_grad()
def _endless(model: Translator) -> Translator:
    """A model that ends a sentence only where it must."""
    for mark in MARKS:
        # A product of zero is less than the largest of thousands of random ones.
        model.words.dense("output")[mark] = 0.0
    if isinstance(model, Latent):
        model.predictor.head.bias[model.predictor.code_sizes[0]] = 1e4
    return model.eval()


def _translating(
    model: Translator, options: Decoding, length: int, batch: int
) -> functools.partial[list[list[int]]]:
    source = torch.randint(len(MARKS) + 1, VOCABULARY, (batch, length))
    source[:, -1] = EOS
    # Who writes all at once leaves room for two tokens more than are needed.
    extra = 3 if isinstance(model, Latent) else 1
    bounded = Decoding(beam=options.beam, max_ratio=1.0, max_extra=extra)
    return functools.partial(model.translate, source, bounded)
