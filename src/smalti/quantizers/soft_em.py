"""Soft expectation-maximisation: a vector is shared among codewords drawn by distance.

Reference:
    Roy, Vaswani, Neelakantan, Parmar, "Theory and Experiments on Vector Quantized
    Autoencoders", 2018, arXiv:1805.11063, section 3 (Monte-Carlo expectation-maximisation).

Differs from the paper:
    Evaluation takes the most probable code; the published code samples there too. The
    distance is divided by a ``temperature`` that the paper fixes at 1, at which wide vectors
    make the softmax one-hot and the method silently equals hard assignment: the entropy
    of the posterior is logged, and ``"scaled"`` sets the temperature of the Gaussian mixture
    whose variance is the running error. The codebook is a buffer that no optimizer touches.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from smalti.errors import require
from smalti.quantizers.base import Quantized, quantizers
from smalti.quantizers.choices import choose
from smalti.quantizers.gradients import GRADIENTS, Gradient
from smalti.quantizers.learning import LEARNING, Learning, MovingAverage
from smalti.quantizers.nearest import best_scoring, nearest
from smalti.quantizers.posterior import sample_codes
from smalti.quantizers.ranks import sum_over_ranks
from smalti.quantizers.revival import DEAD, Dead
from smalti.quantizers.scatter import count_by_code, flat_codes
from smalti.quantizers.settings import count, number, word
from smalti.quantizers.stacked import StackedQuantizer, mean_square, positions, usage_metrics
from smalti.quantizers.starts import STARTS, Start


class Sampled(NamedTuple):
    """A :class:`Quantized` and the codes that its vectors are averages of."""

    vectors: Tensor
    codes: Tensor
    loss: Tensor
    metrics: dict[str, Tensor]
    samples: Tensor
    """``(..., samples)``: each stands for a share of 1/samples in the soft label."""


@quantizers.register("soft_em")
class SoftEM(StackedQuantizer):
    """One codebook; in training a vector becomes the mean of several sampled codewords.

    Args:
        dim: Width of the vectors, in and out.
        codebook_size: Number of codewords.
        samples: Codes drawn for each vector, m in the paper.
        temperature: Divides squared distances; ``"scaled"`` follows the running error.
        prior: ``"uniform"``, or ``"learned"`` from usage (the paper's remark that it collapses).
        decay: Of the moving averages when ``learning`` is the word ``"ema"``.
        beta: How strongly an encoder is held to the codewords it drew.
        learning: ``"ema"`` or a ``MovingAverage``.
        start: See ``VectorQuantizer``.
        dead: See ``VectorQuantizer``.
        gradient: See ``VectorQuantizer``.
        parts: See ``StackedQuantizer``.

    Metrics: distortion (of the mean in training, of the code in evaluation),
    posterior_entropy in nats, temperature, perplexity, batch_used_share, revived.
    """

    scale: Tensor

    def __init__(
        self,
        dim: int,
        codebook_size: int,
        *,
        samples: int = 10,
        temperature: float | str = 1.0,
        prior: str = "uniform",
        decay: float = 0.99,
        beta: float = 0.25,
        learning: str | dict[str, Any] | MovingAverage = "ema",
        start: str | dict[str, Any] | Start = "data",
        dead: str | dict[str, Any] | Dead = "revive",
        gradient: str | dict[str, Any] | Gradient = "straight-through",
        parts: int = 1,
    ) -> None:
        super().__init__(dim, codebook_size, parts)
        self.samples = count("samples", samples)
        self.temperature: float | str = temperature
        if temperature != "scaled":
            self.temperature = number("temperature (or 'scaled')", temperature, above=0)
        self.prior = word("prior", prior, ("uniform", "learned"))
        self.beta = number("beta", beta, least=0)
        decay = number("decay", decay, least=0, below=1)
        chosen: Learning = (
            MovingAverage(decay) if learning == "ema" else choose("learning", learning, LEARNING)
        )
        require(
            isinstance(chosen, MovingAverage), "SoftEM learns by moving averages: learning='ema'"
        )
        self.learning = chosen
        self.decay = chosen.decay
        self.start: Start = choose("start", start, STARTS)
        self.dead: Dead = choose("dead", dead, DEAD)
        self.gradient: Gradient = choose("gradient", gradient, GRADIENTS)
        self.book = self._new_book(self.learning, self.start, self.dead)
        # The running squared error of a coordinate; zero until the first batch.
        self.register_buffer("scale", torch.zeros(()))

    def log_prior(self) -> Tensor:
        """The log-probability of each code before a vector is seen, ``(parts, size)``."""
        uniform = torch.full_like(self.book.counts, -math.log(self.codebook_size))
        if self.prior == "uniform":
            return uniform
        total = self.book.counts.sum(dim=1, keepdim=True)
        shares = (self.book.counts / total.clamp(min=1e-12)).clamp(min=1e-12).log()
        return torch.where(total > 0, shares, uniform)

    def choose(self, x: Tensor) -> Tensor:
        """The most probable codes."""
        if self.prior == "uniform":
            return nearest(x, self.book.codewords)
        centre = self.book.codewords.mean(dim=1, keepdim=True)
        codewords = self.book.codewords - centre
        bias = self.log_prior() * self._temperature(x, None) - codewords.square().sum(-1)
        return best_scoring(x - centre, 2 * codewords, bias)

    def sample(self, x: Tensor, mask: Tensor | None = None) -> Sampled:
        """Quantize with sampled codes, also in evaluation; learn only in training.

        A latent predictor's soft label for a position is the histogram of its samples:
        its loss is the mean of the cross-entropies against each of them.
        """
        flat = self.checked(x, mask).reshape(1, -1, self.dim)
        out, samples = self._sample(flat, None if mask is None else mask.reshape(-1))
        return Sampled(
            out.vectors.view(x.shape).to(x.dtype),
            out.codes.view(*x.shape[:-1], 1),
            out.loss.sum(),
            out.metrics,
            samples.view(*x.shape[:-1], self.samples),
        )

    def quantize(self, x: Tensor, mask: Tensor | None) -> Quantized:
        """Quantize a checked stack; see ``StackedQuantizer``."""
        if self.training:
            return self._sample(x, mask)[0]
        codes = self.choose(x)
        chosen = self.look_up(codes)
        commitment = mean_square(x - chosen, mask)
        counts = count_by_code(codes, self.codebook_size, mask)
        metrics = {"distortion": commitment.detach().mean(), **usage_metrics(counts)}
        return Quantized(self.gradient(x, chosen), codes, self.beta * commitment, metrics)

    def _sample(self, x: Tensor, mask: Tensor | None) -> tuple[Quantized, Tensor]:
        if self.training:
            self.begin(x, mask)
        temperature = self._temperature(x, mask)
        uniforms = torch.rand(*x.shape[:2], self.samples, device=x.device)
        samples, codes, entropy = sample_codes(
            x, self.book.codewords, self.log_prior(), temperature, uniforms
        )
        rows = flat_codes(samples.flatten(1), self.codebook_size).view(-1, self.samples)
        mean = functional.embedding_bag(
            rows, self.book.codewords.view(-1, self.dim), mode="mean"
        ).view(x.shape)
        commitment = mean_square(x - mean, mask)
        several = None if mask is None else mask.repeat_interleave(self.samples)
        counts = count_by_code(samples.flatten(1), self.codebook_size, several) / self.samples
        seen = entropy if mask is None else entropy * mask
        metrics = {
            "distortion": commitment.detach().mean(),
            "posterior_entropy": (seen.sum(dim=1) / positions(x, mask)).mean(),
            "temperature": temperature.clone(),
            **usage_metrics(counts),
        }
        if self.training:
            self._follow_error(x, codes, mask)
            sums = self._sums(x.detach() if mask is None else x.detach() * mask[:, None], rows)
            metrics["revived"] = self.book.learn(x, mask, counts, sums)
        loss = self.beta * commitment
        return Quantized(self.gradient(x, mean), codes, loss, metrics), samples

    def _sums(self, x: Tensor, rows: Tensor) -> Tensor:
        """Each vector goes to its sampled codewords in equal shares, one sample at a time."""
        sums = torch.zeros_like(self.book.codewords).view(-1, self.dim)
        share = x.reshape(-1, self.dim) / self.samples
        for sample in range(self.samples):
            sums.index_add_(0, rows[:, sample], share)
        return sums.view_as(self.book.codewords)

    def _temperature(self, x: Tensor, mask: Tensor | None) -> Tensor:
        if not isinstance(self.temperature, str):
            return x.new_full((), self.temperature)
        # A Gaussian of variance v has exponent -d^2 / 2v. Before the first batch has shown
        # an error, the spread of the vectors stands in for it.
        first = mean_square(x.detach(), mask).mean()
        return 2 * torch.where(self.scale > 0, self.scale, first).clamp(min=1e-12)

    @torch.no_grad()
    def _follow_error(self, x: Tensor, codes: Tensor, mask: Tensor | None) -> None:
        if self.temperature != "scaled":
            return
        seen = x.new_full((), x.shape[1]) if mask is None else mask.sum().float()
        error = mean_square(x - self.look_up(codes), mask).mean() * seen
        error, seen = sum_over_ranks([error, seen])
        error = error / seen.clamp(min=1)
        blended = self.decay * self.scale + (1 - self.decay) * error
        followed = torch.where(self.scale > 0, blended, error)
        self.scale.copy_(torch.where(seen > 0, followed, self.scale))
