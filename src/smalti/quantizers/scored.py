"""What differentiable quantizers share: groups, keys, and scores normalised over the batch.

Reference:
    Chen, Li, Sun, "Differentiable Product Quantization for End-to-End Embedding Compression",
    ICML 2020, arXiv:1908.09756, section 2.

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
from smalti.quantizers.base import Quantizer
from smalti.quantizers.nearest import best_scoring
from smalti.quantizers.ranks import sum_over_ranks_with_gradient
from smalti.quantizers.sampling import draw
from smalti.quantizers.scatter import count_by_code, flat_codes
from smalti.quantizers.settings import count, flag, word
from smalti.quantizers.stacked import mean_square, usage_metrics

NORMALISATIONS = ("none", "batch", "batch_per_group")
# Of the published code's batch normalisation.
MOMENTUM = 0.99
EPSILON = 1e-3


class Scored(Quantizer):
    """Groups of queries, their keys, and how scores are normalised over the batch."""

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

    def _seen(self, like: Tensor, mask: Tensor | None) -> Tensor:
        """How many positions there are on all ranks."""
        here = like.new_full((), like.shape[1]) if mask is None else mask.sum().to(like.dtype)
        return sum_over_ranks_with_gradient(here)[0]

    def _batch_mean(self, x: Tensor, mask: Tensor | None, seen: Tensor) -> Tensor:
        """The mean over the positions of all ranks, ``(groups, width)``."""
        (total,) = sum_over_ranks_with_gradient(there(x, mask).sum(dim=1))
        return total / seen.clamp(min=1)

    def _pooled(self, by_group: Tensor) -> Tensor:
        """Means ``(groups, size)``, over the groups where these share statistics."""
        return by_group.mean(dim=0, keepdim=True) if self.normalisation == "batch" else by_group

    def _spread(self, mean: Tensor, variance: Tensor, seen: Tensor) -> Tensor:
        """The deviation to divide by; the running statistics follow."""
        # Squares of squared distances may overflow where the distances do not.
        variance = variance.clamp(max=1e38)
        with torch.no_grad():
            keep = torch.where(self.steps == 0, 0.0, MOMENTUM)
            # A batch of padding alone has shown nothing.
            keep = torch.where(seen > 0, keep, 1.0)
            self.running_mean.copy_(keep * self.running_mean + (1 - keep) * mean)
            self.running_variance.copy_(keep * self.running_variance + (1 - keep) * variance)
            self.steps.add_((seen > 0).long())
        return (variance + EPSILON).sqrt()

    def _metrics(
        self, queries: Tensor, vectors: Tensor, codes: Tensor, mask: Tensor | None
    ) -> dict[str, Tensor]:
        error = mean_square((queries - vectors).detach(), mask).mean()
        counts = count_by_code(codes, self.codebook_size, mask)
        return {"distortion": error, **usage_metrics(counts)}


def there(x: Tensor, mask: Tensor | None) -> Tensor:
    """What stands at positions, ``(groups, n, width)``, and zeros where there is padding."""
    return x if mask is None else x * mask.to(x.dtype)[:, None]
