"""Differentiable product quantization of query vectors, by softmax or by centroids.

Reference:
    Chen, Li, Sun, "Differentiable Product Quantization for End-to-End Embedding Compression",
    ICML 2020, arXiv:1908.09756, section 2 (DPQ-SX, DPQ-VQ).

Differs from the paper:
    What is said of scores in ``scored``. The normalisation of a softmax's scores is computed
    from the queries' mean and covariance, without the scores: the same numbers, three times
    as fast.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from smalti.quantizers.base import Quantized, quantizers
from smalti.quantizers.gradients import straight_through
from smalti.quantizers.ranks import sum_over_ranks_with_gradient
from smalti.quantizers.scored import Scored, there
from smalti.quantizers.settings import number
from smalti.quantizers.stacked import mean_square


@quantizers.register("differentiable_softmax")
class DifferentiableSoftmax(Scored):
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
            weights, offsets = self._normalised_keys(queries, valid)
            # Offsets as one more weight: adding them afterwards would take as long again.
            longer = torch.cat([queries, queries.new_ones(*queries.shape[:2], 1)], dim=-1)
            weights = torch.cat([weights, offsets.unsqueeze(-1)], dim=-1)
            scores = torch.bmm(longer, weights.transpose(1, 2))
            shares = functional.softmax(scores, dim=-1)
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

    def _score_terms(self, queries: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        keys = self._all_groups(self.keys)
        return queries, keys, keys.new_zeros(keys.shape[:2])

    def _normalised_keys(self, queries: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Weights and offsets whose scores are normalised and over the temperature.

        Scores are as many as queries times codes; their mean and variance follow from the
        queries' mean and covariance, which are small.
        """
        keys = self._all_groups(self.keys)
        if self.normalisation == "none":
            return keys / self.temperature, keys.new_zeros(keys.shape[:2])
        seen = self._seen(queries, mask)
        centre = self._batch_mean(queries, mask, seen).unsqueeze(1)
        centred = queries - centre
        # Sums of squares of long queries would overflow; all ranks divide by the same.
        (reach,) = sum_over_ranks_with_gradient(centred.detach().abs().sum())
        length = (reach / (seen.clamp(min=1) * self.dim)).clamp(min=1e-18)
        scaled = centred / length
        products = torch.bmm(there(scaled, mask).transpose(1, 2), scaled)
        (products,) = sum_over_ranks_with_gradient(products)
        covariance = products / seen.clamp(min=1)
        own_mean = torch.bmm(keys, centre.transpose(1, 2)).squeeze(-1)
        mean = self._pooled(own_mean)
        quadratic = (torch.bmm(keys, covariance) * keys).sum(dim=-1).clamp(min=0)
        own_variance = quadratic * length.square() + (own_mean - mean).square()
        scale = self._spread(mean, self._pooled(own_variance), seen) * self.temperature
        return keys / scale.unsqueeze(-1), self._all_groups(-mean / scale)

    def _values(self) -> Tensor:
        return self.values


@quantizers.register("differentiable_centroid")
class DifferentiableCentroid(Scored):
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
                codes = self._normalised_scores(queries, valid).argmax(dim=-1)
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

    def _normalised_scores(self, queries: Tensor, mask: Tensor | None) -> Tensor:
        """Responses ``(groups, n, size)``, less their batch mean over their batch deviation."""
        features, weights, offsets = self._score_terms(queries)
        scores = torch.baddbmm(offsets.unsqueeze(1), features, weights.transpose(1, 2))
        if self.normalisation == "none":
            return scores
        seen = self._seen(scores, mask)
        mean = self._pooled(self._batch_mean(scores, mask, seen))
        centred = scores - mean.unsqueeze(1)
        variance = self._pooled(self._batch_mean(centred.square(), mask, seen))
        return centred / self._spread(mean, variance, seen).unsqueeze(1)

    def _score_terms(self, queries: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        # Minus the squared distance: 2 q.k - |q|^2 - |k|^2. The length of the query is a
        # feature, because normalisation weighs it differently for each code.
        keys = self._all_groups(self.keys)
        features = torch.cat([queries, queries.square().sum(-1, keepdim=True)], dim=-1)
        weights = torch.cat([2 * keys, -keys.new_ones(*keys.shape[:2], 1)], dim=-1)
        return features, weights, -keys.square().sum(-1)

    def _values(self) -> Tensor:
        return self.keys
