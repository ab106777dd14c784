"""Gumbel-softmax codes: a codeword is drawn with noise that fades while it trains.

Reference:
    Jang, Gu, Poole, "Categorical Reparameterization with Gumbel-Softmax", ICLR 2017,
    arXiv:1611.01144, section 2. Kaiser et al., "Fast Decoding in Sequence Models Using
    Discrete Latent Variables", ICML 2018, arXiv:1803.03382, section 3.1.

Differs from the paper:
    Scores from distances are negative: the near codeword is the likely one (published code
    has the sign the other way round). Evaluation is the best code without noise.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from smalti.quantizers.annealing import Annealing
from smalti.quantizers.base import Quantized, quantizers
from smalti.quantizers.choices import choose
from smalti.quantizers.gradients import straight_through
from smalti.quantizers.learning import GradientDescent
from smalti.quantizers.nearest import best_scoring, nearest
from smalti.quantizers.revival import Keep
from smalti.quantizers.scatter import count_by_code
from smalti.quantizers.settings import flag, number, word
from smalti.quantizers.stacked import StackedQuantizer, mean_square, positions, usage_metrics
from smalti.quantizers.starts import STARTS, Start


@quantizers.register("gumbel")
class Gumbel(StackedQuantizer):
    """One codebook; in training a code is drawn from noisy scores.

    Args:
        dim: Width of the vectors, in and out.
        codebook_size: Number of codewords.
        scores: ``"distance"`` (minus the squared distance) or ``"linear"`` (a learned map).
        hard: Whether training passes one codeword on, or the soft mixture.
        temperature: At the first step, tau.
        final_temperature: After ``anneal_steps``.
        anneal_steps: Steps over which the temperature falls exponentially.
        kl_weight: Weight of the divergence of the scores from uniform.
        start: See ``VectorQuantizer``.
        parts: See ``StackedQuantizer``.

    The training step needs a dense vectors x codewords matrix: every score has a gradient.

    Metrics: distortion, temperature, perplexity, batch_used_share.
    """

    def __init__(
        self,
        dim: int,
        codebook_size: int,
        *,
        scores: str = "distance",
        hard: bool = True,
        temperature: float = 2.0,
        final_temperature: float = 0.5,
        anneal_steps: int = 10_000,
        kl_weight: float = 0.0,
        start: str | dict[str, Any] | Start = "data",
        parts: int = 1,
    ) -> None:
        super().__init__(dim, codebook_size, parts)
        self.learns_from_vectors = True
        self.averages_coordinates = False
        self.scores = word("scores", scores, ("distance", "linear"))
        self.hard = flag("hard", hard)
        self.kl_weight = number("kl_weight", kl_weight, least=0)
        self.temperature, self.final_temperature = temperature, final_temperature
        self.anneal_steps = anneal_steps
        self.start: Start = choose("start", start, STARTS)
        self.annealing = Annealing(temperature, final_temperature, anneal_steps)
        self.book = self._new_book(GradientDescent(), self.start, Keep())
        if scores == "linear":
            self.weight = nn.Parameter(torch.randn(parts, codebook_size, dim) / math.sqrt(dim))
            self.bias = nn.Parameter(torch.zeros(parts, codebook_size))

    def choose(self, x: Tensor) -> Tensor:
        """The best-scoring codes, without noise."""
        if self.scores == "distance":
            return nearest(x, self.book.codewords)
        return best_scoring(x, self.weight, self.bias)

    def quantize(self, x: Tensor, mask: Tensor | None) -> Quantized:
        """Quantize a checked stack; see ``StackedQuantizer``."""
        temperature = self.annealing.value()
        if self.training:
            self.begin(x, mask)
            vectors, codes, loss = self._draw(x, mask, temperature)
            self.annealing.advance()
        else:
            codes = self.choose(x)
            vectors = straight_through(x, self.look_up(codes))
            loss = x.new_zeros(self.parts)
        counts = count_by_code(codes, self.codebook_size, mask)
        metrics = {
            "distortion": mean_square((x - vectors).detach(), mask).mean(),
            "temperature": temperature,
            **usage_metrics(counts),
        }
        return Quantized(vectors, codes, loss, metrics)

    def _draw(
        self, x: Tensor, mask: Tensor | None, temperature: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        codewords = self.book.codewords
        if self.scores == "distance":
            products = torch.baddbmm(
                codewords.square().sum(-1).unsqueeze(1), x, codewords.transpose(1, 2), alpha=-2
            )
            logits = -(products + x.square().sum(-1, keepdim=True))
        else:
            logits = torch.baddbmm(self.bias.unsqueeze(1), x, self.weight.transpose(1, 2))
        uniform = torch.rand_like(logits).clamp_(1e-5, 1 - 1e-5)
        shares = functional.softmax((logits - (-uniform.log()).log()) / temperature, dim=-1)
        codes = shares.argmax(dim=-1)
        if self.hard:
            chosen = self.look_up(codes)
            # One codeword going forward; going back, the scores learn from the mixture.
            soft = torch.bmm(shares, codewords.detach())
            vectors = chosen + (soft - soft.detach())
        else:
            vectors = torch.bmm(shares, codewords)
        loss = x.new_zeros(self.parts)
        if self.kl_weight > 0:
            logs = functional.log_softmax(logits, dim=-1)
            divergence = (logs.exp() * (logs + math.log(self.codebook_size))).sum(-1)
            if mask is not None:
                divergence = divergence * mask
            loss = self.kl_weight * divergence.sum(dim=1) / positions(x, mask)
        return vectors, codes, loss
