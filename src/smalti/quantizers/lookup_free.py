"""Lookup-free quantization: each coordinate becomes the sign it has.

Reference:
    Yu et al., "Language Model Beats Diffusion: Tokenizer is Key to Visual Generation", ICLR
    2024, arXiv:2310.05737, section 3.1.

Differs from the paper:
    Each bit keeps a code of its own. The entropy of the mean assignment is summed over bits
    instead of taken over all 2^bits words: an upper bound of it, without a table of words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from smalti.quantizers.base import Quantized, Quantizer, quantizers
from smalti.quantizers.gradients import straight_through
from smalti.quantizers.ranks import sum_over_ranks_with_gradient
from smalti.quantizers.settings import count, number
from smalti.quantizers.stacked import mean_square


@quantizers.register("lookup_free")
class LookupFree(Quantizer):
    """``bits`` codebooks of the two words -1 and 1.

    Args:
        dim: Width of the vectors, in and out; projected where it is not ``bits``.
        bits: How many signs are kept.
        beta: How strongly an encoder is held to the signs.
        entropy_weight: Weight of: sure assignments for a vector, even ones over the batch.
        sharpness: Inverse temperature of the soft assignments in that term.

    Metrics: distortion (of the signs), bit_entropy (of the mean assignment, in nats a bit).
    """

    example: ClassVar[Mapping[str, Any]] = {"dim": 8, "bits": 4}

    def __init__(
        self,
        dim: int,
        bits: int,
        *,
        beta: float = 0.25,
        entropy_weight: float = 0.1,
        sharpness: float = 1.0,
    ) -> None:
        bits = count("bits", bits)
        super().__init__(dim, (2,) * bits)
        self.learns_from_vectors = True
        self.bits = bits
        self.beta = number("beta", beta, least=0)
        self.entropy_weight = number("entropy_weight", entropy_weight, least=0)
        self.sharpness = number("sharpness", sharpness, above=0)
        self.project_in = nn.Identity() if dim == bits else nn.Linear(dim, bits)
        self.project_out = nn.Identity() if dim == bits else nn.Linear(bits, dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Quantized:
        """Quantize vectors ``(..., dim)``; see :class:`Quantizer`."""
        flat = self.checked(x, mask).reshape(-1, self.dim)
        valid = None if mask is None else mask.reshape(-1)
        narrow = self.project_in(flat)
        codes = (narrow > 0).long()
        signs = codes.float() * 2 - 1
        vectors = self.project_out(straight_through(narrow, signs))
        commitment = mean_square((narrow - signs)[None], valid)[0]
        weights = flat.new_ones(flat.shape[0], 1) if valid is None else valid.float()[:, None]
        total = weights.sum()
        # Minus the squared distances to 1 and -1 differ by four times the coordinate.
        logits = 4 * self.sharpness * narrow
        ones = torch.sigmoid(logits)
        sure = functional.softplus(logits) - ones * logits
        seen, everyone = sum_over_ranks_with_gradient((weights * ones).sum(dim=0), total)
        # Off the ends, where the gradient of an entropy is infinite.
        mean = (seen / everyone.clamp(min=1)).clamp(1e-6, 1 - 1e-6)
        even = torch.special.entr(mean) + torch.special.entr(1 - mean)
        entropy = ((weights * sure).sum(dim=0) / total.clamp(min=1) - even).sum()
        return Quantized(
            vectors=vectors.view(x.shape).to(x.dtype),
            codes=codes.view(*x.shape[:-1], self.bits),
            loss=self.beta * commitment + self.entropy_weight * entropy,
            metrics={
                "distortion": commitment.detach(),
                "bit_entropy": even.detach().mean(),
            },
        )

    def encode(self, x: Tensor) -> Tensor:
        """The codes ``(..., bits)`` of vectors ``(..., dim)``."""
        flat = self.checked(x).reshape(-1, self.dim)
        narrow: Tensor = self.project_in(flat)
        return (narrow > 0).long().view(*x.shape[:-1], self.bits)

    def decode(self, codes: Tensor) -> Tensor:
        """The vectors ``(..., dim)`` of codes ``(..., bits)``."""
        signs = self.checked_codes(codes).reshape(-1, self.bits).float() * 2 - 1
        vectors: Tensor = self.project_out(signs)
        return vectors.view(*codes.shape[:-1], self.dim)
