"""Differentiable product quantization of query vectors, by softmax or by centroids.

Reference:
    Chen, Li, Sun, "Differentiable Product Quantization for End-to-End Embedding Compression",
    ICML 2020, arXiv:1908.09756, section 2 (DPQ-SX, DPQ-VQ).

Differs from the paper:
    Scores are normalised for each group and code by default; the published code pools its
    statistics over the groups although they share nothing (``"batch"``). Running statistics
    start at the first batch's, so that evaluation is right from the first step on. Keys start
    at random; ``start_from`` puts them on query vectors.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from smalti.errors import require
from smalti.quantizers.base import Quantized, Quantizer, quantizers
from smalti.quantizers.gradients import straight_through
from smalti.quantizers.nearest import best_scoring
from smalti.quantizers.ranks import sum_over_ranks_with_gradient
from smalti.quantizers.sampling import draw
from smalti.quantizers.scatter import count_by_code, flat_codes
from smalti.quantizers.settings import count, flag, number, word
from smalti.quantizers.stacked import mean_square, usage_metrics

NORMALISATIONS = ("none", "batch", "batch_per_group")
# Of the published code's batch normalisation.
MOMENTUM = 0.99
EPSILON = 1e-3


class _Differentiable(Quantizer):
    """What both choices share: groups, keys, and scores normalised over the batch."""

    example: ClassVar[Mapping[str, Any]] = {"dim": 8, "num_codebooks": 2, "codebook_size": 16}
    running_mean: Tensor
    running_variance: Tensor
    steps: Tensor

    def __init__(
        self, dim: int, num_codebooks: int, codebook_size: int, shared: bool, normalisation: str
    ) -> None:
        num_codebooks = count("num_codebooks", num_codebooks)
        require(
            count("dim", dim) % num_codebooks == 0,
            f"dim must be divisible by num_codebooks, got {dim!r} and {num_codebooks!r}",
        )
        super().__init__(dim, (codebook_size,) * num_codebooks)
        self.codebook_size = self.code_sizes[0]
        self.shared = flag("shared", shared)
        self.normalisation = word("normalisation", normalisation, NORMALISATIONS)
        self.width = self.dim // num_codebooks
        groups = 1 if shared else num_codebooks
        self.keys = nn.Parameter(torch.randn(groups, codebook_size, self.width) / math.sqrt(dim))
        pooled = (1 if normalisation == "batch" else num_codebooks, codebook_size)
        self.register_buffer("running_mean", torch.zeros(pooled))
        self.register_buffer("running_variance", torch.ones(pooled))
        self.register_buffer("steps", torch.tensor(0))

    @abstractmethod
    def _scores(self, queries: Tensor) -> Tensor:
        """Responses ``(groups, n, size)`` of queries ``(groups, n, width)``."""

    @abstractmethod
    def _score_terms(self, queries: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Features, weights and offsets whose product and sum are the responses."""

    @abstractmethod
    def _values(self) -> Tensor:
        """What a code stands for, ``(groups, size, width)``."""

    def encode(self, x: Tensor) -> Tensor:
        """The codes ``(..., num_codebooks)``, under the running statistics."""
        return (
            self._choose(self._groups(self.checked(x)))
            .t()
            .reshape(*x.shape[:-1], self.num_codebooks)
        )

    def decode(self, codes: Tensor) -> Tensor:
        """The vectors ``(..., dim)`` of codes ``(..., num_codebooks)``."""
        flat = self.checked_codes(codes).reshape(-1, self.num_codebooks)
        return self._join(self._look_up(flat.t())).view(*codes.shape[:-1], self.dim)

    def _start(self, x: Tensor) -> None:
        queries = self._groups(x)
        if self.shared:
            queries = queries.reshape(1, -1, self.width)
        with torch.no_grad():
            self.keys.copy_(draw(queries, None, self.codebook_size))
            # Statistics of other keys' scores mean nothing for these.
            self.running_mean.zero_()
            self.running_variance.fill_(1.0)
            self.steps.zero_()

    def _groups(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, self.num_codebooks, self.width)
        return flat.transpose(0, 1).contiguous()

    def _join(self, stack: Tensor) -> Tensor:
        return stack.transpose(0, 1).reshape(stack.shape[1], self.dim)

    def _all_groups(self, tensor: Tensor) -> Tensor:
        return tensor.expand(self.num_codebooks, *tensor.shape[1:])

    def _look_up(self, codes: Tensor) -> Tensor:
        values = self._values()
        rows = codes.reshape(-1) if self.shared else flat_codes(codes, self.codebook_size)
        looked = functional.embedding(rows, values.reshape(-1, self.width))
        return looked.view(*codes.shape, self.width)

    def _choose(self, queries: Tensor) -> Tensor:
        features, weights, offsets = self._score_terms(queries)
        if self.normalisation != "none":
            spread = (self._all_groups(self.running_variance) + EPSILON).sqrt()
            offsets = (offsets - self._all_groups(self.running_mean)) / spread
            weights = weights / spread.unsqueeze(-1)
        return best_scoring(features, weights, offsets)

    def _normalised(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        """Scores less their batch mean over their batch deviation; follows both."""
        if self.normalisation == "none":
            return scores
        weights = scores.new_ones(1, 1) if mask is None else mask.float()[:, None]
        seen = scores.new_full((), scores.shape[1]) if mask is None else weights.sum()
        if self.normalisation == "batch":
            seen = seen * self.num_codebooks
        (seen,) = sum_over_ranks_with_gradient(seen)
        mean = self._pooled(weights * scores) / seen.clamp(min=1)
        centred = scores - mean.unsqueeze(1)
        # Squares of squared distances may overflow where the distances do not.
        variance = (self._pooled(weights * centred.square()) / seen.clamp(min=1)).clamp(max=1e38)
        with torch.no_grad():
            keep = torch.where(self.steps == 0, 0.0, MOMENTUM)
            # A batch of padding alone has shown nothing.
            keep = torch.where(seen > 0, keep, 1.0)
            self.running_mean.copy_(keep * self.running_mean + (1 - keep) * mean)
            self.running_variance.copy_(keep * self.running_variance + (1 - keep) * variance)
            self.steps.add_((seen > 0).long())
        spread = (variance + EPSILON).sqrt()
        return centred / spread.unsqueeze(1)

    def _pooled(self, scores: Tensor) -> Tensor:
        """Sums over positions and ranks, and over groups where these share statistics."""
        total = scores.sum(dim=1)
        if self.normalisation == "batch":
            total = total.sum(dim=0, keepdim=True)
        return sum_over_ranks_with_gradient(total)[0]

    def _metrics(
        self, queries: Tensor, vectors: Tensor, codes: Tensor, mask: Tensor | None
    ) -> dict[str, Tensor]:
        error = mean_square((queries - vectors).detach(), mask).mean()
        counts = count_by_code(codes, self.codebook_size, mask)
        return {"distortion": error, **usage_metrics(counts)}


@quantizers.register("differentiable_softmax")
class DifferentiableSoftmax(_Differentiable):
    """DPQ-SX: a code is the key with the largest product; values are what it stands for.

    Args:
        dim: Width of the query vectors and of the output.
        num_codebooks: Groups, D in the paper.
        codebook_size: Codes of each group, K.
        temperature: Of the softmax that carries the gradient.
        shared: One set of keys and values for all groups.
        normalisation: ``"batch_per_group"``, ``"batch"`` (as published) or ``"none"``.

    Metrics: distortion (of the queries), perplexity, batch_used_share.
    """

    def __init__(
        self,
        dim: int,
        num_codebooks: int,
        codebook_size: int,
        *,
        temperature: float = 1.0,
        shared: bool = False,
        normalisation: str = "batch_per_group",
    ) -> None:
        super().__init__(dim, num_codebooks, codebook_size, shared, normalisation)
        self.learns_from_vectors = True
        self.temperature = number("temperature", temperature, above=0)
        self.values = nn.Parameter(torch.randn_like(self.keys) / math.sqrt(dim))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Quantized:
        """Quantize query vectors ``(..., dim)``; see :class:`Quantizer`."""
        queries = self._groups(self.checked(x, mask))
        valid = None if mask is None else mask.reshape(-1)
        if self.training:
            scores = self._normalised(self._scores(queries), valid)
            shares = functional.softmax(scores / self.temperature, dim=-1)
            codes = scores.argmax(dim=-1)
            # One value going forward; going back, scores learn from the softmax mixture.
            mixture = torch.bmm(shares, self._all_groups(self.values).detach())
            stack = self._look_up(codes) + (mixture - mixture.detach())
        else:
            codes = self._choose(queries)
            stack = straight_through(queries, self._look_up(codes))
        return Quantized(
            vectors=self._join(stack).view(x.shape).to(x.dtype),
            codes=codes.t().reshape(*x.shape[:-1], self.num_codebooks),
            loss=queries.new_zeros(()),
            metrics=self._metrics(queries, stack, codes, valid),
        )

    def _scores(self, queries: Tensor) -> Tensor:
        return torch.bmm(queries, self._all_groups(self.keys).transpose(1, 2))

    def _score_terms(self, queries: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        keys = self._all_groups(self.keys)
        return queries, keys, keys.new_zeros(keys.shape[:2])

    def _values(self) -> Tensor:
        return self.values


@quantizers.register("differentiable_centroid")
class DifferentiableCentroid(_Differentiable):
    """DPQ-VQ: a code is the best-scoring centroid, which is also what it stands for.

    Args:
        dim: Width of the query vectors and of the output.
        num_codebooks: Groups, D in the paper.
        codebook_size: Centroids of each group, K.
        beta: How strongly queries are held to their centroids; 0 as published.
        shared: One set of centroids for all groups.
        normalisation: ``"batch_per_group"``, ``"batch"`` (as published) or ``"none"``. With
            normalised scores a code is not always the nearest centroid: isolated ones get used.

    Metrics: distortion, perplexity, batch_used_share.
    """

    def __init__(
        self,
        dim: int,
        num_codebooks: int,
        codebook_size: int,
        *,
        beta: float = 0.0,
        shared: bool = False,
        normalisation: str = "batch_per_group",
    ) -> None:
        super().__init__(dim, num_codebooks, codebook_size, shared, normalisation)
        self.beta = number("beta", beta, least=0)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Quantized:
        """Quantize query vectors ``(..., dim)``; see :class:`Quantizer`."""
        queries = self._groups(self.checked(x, mask))
        valid = None if mask is None else mask.reshape(-1)
        if self.training:
            with torch.no_grad():
                codes = self._normalised(self._scores(queries), valid).argmax(dim=-1)
        else:
            codes = self._choose(queries)
        chosen = self._look_up(codes)
        attraction = mean_square(queries.detach() - chosen, valid).mean()
        commitment = mean_square(queries - chosen.detach(), valid).mean()
        stack = straight_through(queries, chosen)
        return Quantized(
            vectors=self._join(stack).view(x.shape).to(x.dtype),
            codes=codes.t().reshape(*x.shape[:-1], self.num_codebooks),
            loss=attraction + self.beta * commitment,
            metrics=self._metrics(queries, chosen, codes, valid),
        )

    def _scores(self, queries: Tensor) -> Tensor:
        features, weights, offsets = self._score_terms(queries)
        return torch.baddbmm(offsets.unsqueeze(1), features, weights.transpose(1, 2))

    def _score_terms(self, queries: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        # Minus the squared distance: 2 q.k - |q|^2 - |k|^2. The length of the query is a
        # feature, because normalisation weighs it differently for each code.
        keys = self._all_groups(self.keys)
        features = torch.cat([queries, queries.square().sum(-1, keepdim=True)], dim=-1)
        weights = torch.cat([2 * keys, -keys.new_ones(*keys.shape[:2], 1)], dim=-1)
        return features, weights, -keys.square().sum(-1)

    def _values(self) -> Tensor:
        return self.keys
