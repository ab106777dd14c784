"""Codes of latents written one latent after the other: the likeliest ones, and samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from smalti.translation.decoding import Decoding
from smalti.translation.encoding import Encoded

if TYPE_CHECKING:
    from smalti.quantizers.base import Quantizer
    from smalti.translation.predictor import Predictor


@dataclass(frozen=True)
class Latents:
    """The codes of some sentences.

    Args:
        codes: ``(rows, latents, num_codebooks)``; padding holds any codes.
        mask: ``(rows, latents)`` bool, False where there is padding.
        lengths: How many tokens each row has at most.
    """

    codes: Tensor
    mask: Tensor
    lengths: list[int]


class _Walk(Protocol):
    def step(self, codes: Tensor | None) -> Tensor:
        """Logits ``(rows, codes and ends)`` after the codes ``(rows, num_codebooks)``."""


def predict(
    predictor: Predictor,
    quantizer: Quantizer,
    encoded: Encoded,
    limits: list[int],
    options: Decoding,
) -> Latents:
    """The latents of each source, ``options.samples`` in a row; the first is the likeliest.

    Args:
        predictor: Who says how likely codes are.
        quantizer: Who says what they stand for.
        encoded: The sources.
        limits: How many tokens each has at most.
        options: How many samples, and whether with a cache.
    """
    per_source, stride = options.samples, predictor.stride
    longest = -(-max(limits) // stride)
    # A number of tokens that is close to right should cut off nothing.
    spare = max(1, stride // 4)
    kind = _CachedWalk if options.cached else _RepeatedWalk
    walk: _Walk = kind(predictor, quantizer, encoded, per_source, longest)
    noise = _Noise(options, len(limits))
    most = [limit for limit in limits for _ in range(per_source)]
    counts, lengths = [0] * len(most), [0] * len(most)
    found: list[Tensor] = []
    codes: Tensor | None = None
    while 0 in counts:
        logits = walk.step(codes)
        codes = predictor.likeliest(noise(logits))
        found.append(codes)
        for row, room in enumerate(predictor.rooms(logits, codes)):
            if counts[row] == 0 and (room > 0 or stride * len(found) >= most[row]):
                counts[row] = len(found)
                own = min(room + spare, stride) if room else stride
                lengths[row] = min(stride * (len(found) - 1) + own, most[row])
    mask = torch.arange(len(found)) < torch.tensor(counts)[:, None]
    return Latents(torch.stack(found, dim=1), mask.to(found[0].device), lengths)


class _Noise:
    """Makes samples of likeliest codes: the first row of a source is left as it is.

    The same noise is added for every source, so that a source's samples are the same alone
    and in a batch.

    Args:
        options: How many samples, at which temperature, from which seed.
        sources: How many sources there are.
    """

    def __init__(self, options: Decoding, sources: int) -> None:
        self.samples, self.temperature, self.sources = options.samples, options.temperature, sources
        self.generator = torch.Generator().manual_seed(options.seed)

    def __call__(self, logits: Tensor) -> Tensor:
        if self.samples == 1:
            return logits
        shape = (self.samples - 1, logits.shape[1])
        gumbel = -(-torch.rand(shape, generator=self.generator).clamp(min=1e-20).log()).log()
        first = torch.zeros(1, logits.shape[1])
        noise = self.temperature * torch.cat([first, gumbel.clamp(max=100.0)])
        return logits + noise.to(logits).repeat(self.sources, 1)


class _CachedWalk:
    def __init__(
        self,
        predictor: Predictor,
        quantizer: Quantizer,
        encoded: Encoded,
        per_source: int,
        longest: int,
    ) -> None:
        rows = len(encoded.vectors) * per_source
        self.cache = predictor.layers.new_cache(
            rows, encoded.vectors, context_mask=encoded.needed_mask(), length=longest
        )
        self.lean = predictor.lean(quantizer)
        self.positions = predictor.positions(longest).unbind()

    def step(self, codes: Tensor | None) -> Tensor:
        return self.lean.step(codes, self.positions[self.cache.position], self.cache)


class _RepeatedWalk:
    def __init__(
        self,
        predictor: Predictor,
        quantizer: Quantizer,
        encoded: Encoded,
        per_source: int,
        longest: int,
    ) -> None:
        del longest
        self.predictor, self.quantizer = predictor, quantizer
        self.encoded = encoded.repeated(per_source)
        # The predictor looks at all latents but the last, which need not be known.
        shape = (len(self.encoded.vectors), 1, quantizer.dim)
        self.latents = self.encoded.vectors.new_zeros(shape)

    def step(self, codes: Tensor | None) -> Tensor:
        if codes is not None:
            latest = self.quantizer.decode(codes)[:, None]
            self.latents = torch.cat([self.latents[:, :-1], latest, self.latents[:, -1:]], dim=1)
        logits: Tensor = self.predictor(self.latents, self.encoded)[:, -1]
        return logits
