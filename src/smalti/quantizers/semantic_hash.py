"""Improved semantic hashing: a vector becomes a few noisy, then clean, bits.

Reference:
    Kaiser, Bengio, "Discrete Autoencoders for Sequence Models", 2018, arXiv:1801.09797,
    section 2; Roy et al., arXiv:1805.11063, appendix (as a bottleneck for translation).

Differs from the paper:
    Evaluation always takes the bits of the clean vector. The share of examples that see hard
    bits in training rises over ``warmup_steps`` of the layer itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from smalti.quantizers.base import Quantized, Quantizer, quantizers
from smalti.quantizers.gradients import straight_through
from smalti.quantizers.settings import count, number
from smalti.quantizers.stacked import mean_square

# All bits are one code.
MOST_BITS = 62


@quantizers.register("semantic_hash")
class SemanticHash(Quantizer):
    """A code of ``bits`` bits, little-endian.

    Args:
        dim: Width of the vectors, in and out.
        bits: Length of the code; there are 2 to this power codes.
        noise: Standard deviation of the noise in training.
        mix: The share of examples that see hard bits at the end of the warm-up.
        warmup_steps: Training steps over which that share rises.

    Metrics: distortion, bit_entropy (mean over bits, in bits; a dead bit has none).
    """

    example: ClassVar[Mapping[str, Any]] = {"dim": 8, "bits": 5}
    step: Tensor

    def __init__(
        self,
        dim: int,
        bits: int,
        *,
        noise: float = 0.5,
        mix: float = 0.5,
        warmup_steps: int = 10_000,
    ) -> None:
        bits = count("bits", bits, most=MOST_BITS)
        super().__init__(dim, (2**bits,))
        self.bits = bits
        self.learns_from_vectors = True
        self.noise = number("noise", noise, least=0)
        self.mix = number("mix", mix, least=0, most=1)
        self.warmup_steps = count("warmup_steps", warmup_steps)
        self.to_bits = nn.Linear(dim, bits)
        self.when_one = nn.Linear(bits, dim)
        self.when_zero = nn.Linear(bits, dim, bias=False)
        self.register_buffer("step", torch.tensor(0))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Quantized:
        """Quantize vectors ``(..., dim)``; see :class:`Quantizer`."""
        flat = self.checked(x, mask).reshape(-1, self.dim)
        scores = self.to_bits(flat)
        if self.training:
            noisy = scores + self.noise * truncated_normal_like(scores)
            soft = saturating_sigmoid(noisy)
            hard = straight_through(soft, (soft > 0.5).float())
            share = self.mix * (self.step / self.warmup_steps).clamp(0.01, 1.0)
            pick = torch.rand(flat.shape[0], 1, device=flat.device) < share
            state = torch.where(pick, hard, soft)
            clean = soft > 0.5
            self.step.add_(1)
        else:
            clean = scores > 0
            state = straight_through(saturating_sigmoid(scores), clean.float())
        vectors = self._expand(state)
        codes = self._join(clean)
        valid = None if mask is None else mask.reshape(-1)
        weights = flat.new_ones(flat.shape[0]) if valid is None else valid.float()
        ones = (weights[:, None] * clean).sum(dim=0) / weights.sum().clamp(min=1)
        entropy = torch.special.entr(ones) + torch.special.entr(1 - ones)
        return Quantized(
            vectors=vectors.view(x.shape).to(x.dtype),
            codes=codes.view(*x.shape[:-1], 1),
            loss=flat.new_zeros(()),
            metrics={
                "distortion": mean_square((flat - vectors).detach()[None], valid)[0],
                "bit_entropy": entropy.mean() / math.log(2),
            },
        )

    def encode(self, x: Tensor) -> Tensor:
        """The codes ``(..., 1)`` of the clean bits."""
        flat = self.checked(x).reshape(-1, self.dim)
        return self._join(self.to_bits(flat) > 0).view(*x.shape[:-1], 1)

    def decode(self, codes: Tensor) -> Tensor:
        """The vectors of codes ``(..., 1)``."""
        flat = self.checked_codes(codes).reshape(-1, 1)
        places = torch.arange(self.bits, device=codes.device)
        return self._expand(((flat >> places) & 1).float()).view(*codes.shape[:-1], self.dim)

    def _expand(self, state: Tensor) -> Tensor:
        out: Tensor = self.when_one(state) + self.when_zero(1 - state)
        return out

    def _join(self, bits: Tensor) -> Tensor:
        places = torch.arange(self.bits, device=bits.device)
        return (bits.long() << places).sum(dim=-1)


def saturating_sigmoid(x: Tensor) -> Tensor:
    """A sigmoid stretched and cut so that it reaches 0 and 1."""
    return (1.2 * torch.sigmoid(x) - 0.1).clamp(0.0, 1.0)


def truncated_normal_like(x: Tensor) -> Tensor:
    """Standard normal numbers between -2 and 2, by the inverse of their distribution."""
    inside = math.erf(2 / math.sqrt(2))
    return math.sqrt(2) * torch.erfinv(inside * (2 * torch.rand_like(x) - 1))
