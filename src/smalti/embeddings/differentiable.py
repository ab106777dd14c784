"""Codes that are learned with the task: differentiable product quantization of a table.

Reference:
    Chen, Li, Sun, "Differentiable Product Quantization for End-to-End Embedding Compression",
    ICML 2020, arXiv:1908.09756, section 2 (DPQ-SX, DPQ-VQ; the compression ratio).

Differs from the paper:
    There is an export, which equals the module in evaluation bit for bit. Keys start on query
    vectors. Scores are normalised for each group (see the quantizers). ``fit`` learns codes of
    a finished table with squared error as the task: it starts at the centres of k-means, and
    returns the best table seen, since gradients rarely improve on them; queries of centroids
    then stay on the rows.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from smalti.codes.packing import bits_of
from smalti.embeddings.base import CompressedEmbedding, compressors
from smalti.embeddings.clustering import cluster, decode
from smalti.embeddings.coded import CodedTable
from smalti.embeddings.coding import CodeMethod
from smalti.embeddings.differentiable_table import (
    CHOICES,
    DifferentiableEmbedding,
    learning_loss,
)
from smalti.embeddings.weighting import row_weights
from smalti.quantizers.differentiable import DifferentiableCentroid
from smalti.quantizers.scored import NORMALISATIONS
from smalti.quantizers.settings import count, flag, number, word

__all__ = [
    "CompressionRatio",
    "Differentiable",
    "DifferentiableEmbedding",
    "compression_ratio",
    "learning_loss",
]

# Of ``fit``: Lloyd's steps of the start, rows of a batch, and how often a table is weighed.
ITERATIONS = 20
BATCH = 1024
CHECK_EVERY = 50


class CompressionRatio(NamedTuple):
    """Bits of a float32 table over bits of its codes and codebooks."""

    ideal: float
    """A code counted as log2 of the codebook's size, as papers do."""
    packed: float
    """A code counted as whole bits, as files hold it; the same for powers of two."""


def compression_ratio(
    rows: int, dim: int, num_codebooks: int, codebook_size: int, shared: bool = False
) -> CompressionRatio:
    """How much smaller a table is as codes, with codebooks in float32.

    Example:
        >>> ratio = compression_ratio(30522, 768, num_codebooks=128, codebook_size=32)
        >>> round(ratio.ideal, 1)
        36.9
    """
    books = 32 * codebook_size * dim / (num_codebooks if shared else 1)
    full, places = 32 * rows * dim, rows * num_codebooks
    return CompressionRatio(
        ideal=full / (places * math.log2(codebook_size) + books),
        packed=full / (places * bits_of(codebook_size) + books),
    )


@compressors.register("differentiable")
class Differentiable(CodeMethod):
    """Differentiable product quantization: ``start`` for a task, ``fit`` for a finished table.

    Args:
        choice: ``"softmax"`` (DPQ-SX) or ``"centroid"`` (DPQ-VQ).
        num_codebooks: Codes a row, D in the paper; it must divide the width.
        codebook_size: Codewords of each codebook, K.
        shared: One codebook for all parts of a row.
        distance_norm: How scores are normalised: ``"batch_per_group"``, ``"batch"``, ``"none"``.
            Take ``"none"`` with centroids: normalised scores choose centroids that are not the
            nearest, and leave many without use.
        precision: What codebooks are saved as, ``"float32"`` or ``"float16"``.
        steps: Of ``fit``: how many batches of rows it learns from.
        learning_rate: Of ``fit``, in units of the table's spread.
        power: Of ``fit``: how much token counts matter, 0 not at all, 1 fully.
    """

    example: ClassVar[dict[str, Any]] = {"num_codebooks": 6, "codebook_size": 16, "steps": 50}

    def __init__(
        self,
        choice: str = "softmax",
        num_codebooks: int = 32,
        codebook_size: int = 32,
        shared: bool = False,
        distance_norm: str = "batch_per_group",
        precision: str = "float32",
        steps: int = 300,
        learning_rate: float = 1e-2,
        power: float = 0.5,
    ) -> None:
        super().__init__(num_codebooks, codebook_size, power, precision)
        self.choice = word("choice", choice, tuple(CHOICES))
        self.shared = flag("shared", shared)
        self.distance_norm = word("distance_norm", distance_norm, NORMALISATIONS)
        self.steps = count("steps", steps, least=0)
        self.learning_rate = number("learning_rate", learning_rate, above=0)

    def start(self, rows: int, dim: int) -> DifferentiableEmbedding:
        """An untrained table, to be learned with a task; keys start on query vectors."""
        table = DifferentiableEmbedding(
            rows,
            dim,
            self.choice,
            self.num_codebooks,
            self.codebook_size,
            self.shared,
            self.distance_norm,
            self.precision,
        )
        table.quantizer.start_from(table.queries.detach())
        return table

    def outline(self, rows: int, dim: int) -> CodedTable:
        """An empty table of the shape that ``fit`` and an export make."""
        return CodedTable(
            rows,
            dim,
            parts=self.num_codebooks,
            stages=1,
            codebook_size=self.codebook_size,
            shared=self.shared and self.num_codebooks > 1,
            precision=self.precision,
        )

    def _fit(
        self,
        table: Tensor,
        counts: Tensor | None,
        special: list[int],
        generator: torch.Generator,
    ) -> CompressedEmbedding:
        del special
        weights = row_weights(counts, len(table), self.power)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(torch.randint(1 << 62, (), generator=generator)))
            module = self.start(*table.shape)
        self._start_near(module, table, weights, generator)
        return self._learn(module, table, weights, generator)

    def _start_near(
        self,
        module: DifferentiableEmbedding,
        table: Tensor,
        weights: Tensor,
        generator: torch.Generator,
    ) -> None:
        """Put values on the centres of k-means, and queries where they choose their centre."""
        parts = table.view(len(table), self.num_codebooks, -1).transpose(0, 1)
        if self.shared:
            parts, weights = parts.reshape(1, -1, parts.shape[-1]), weights.repeat(len(parts))
        centres, codes = cluster(
            parts.contiguous(), weights, self.codebook_size, ITERATIONS, generator
        )
        quantizer = module.quantizer
        if isinstance(quantizer, DifferentiableCentroid):
            quantizer.keys.copy_(centres)
            module.queries.copy_(table)
            return
        # Of keys of one length a query that points along one of them has the largest product
        # with this one.
        quantizer.values.copy_(centres)
        quantizer.keys.copy_(functional.normalize(centres - centres.mean(1, keepdim=True), dim=-1))
        pointing = decode(quantizer.keys, codes).view(self.num_codebooks, len(table), -1)
        module.queries.copy_(pointing.transpose(0, 1).reshape(table.shape))

    def _learn(
        self,
        module: DifferentiableEmbedding,
        table: Tensor,
        weights: Tensor,
        generator: torch.Generator,
    ) -> CodedTable:
        """Adam on the weighted squared error; the best table that was seen is returned."""
        softmax = self.choice == "softmax"
        # Queries of centroids stay on the rows, where the nearest centroid is the best.
        module.queries.requires_grad_(softmax)
        learned = [parameter for parameter in module.parameters() if parameter.requires_grad]
        optimizer = torch.optim.Adam(
            learned, lr=self.learning_rate * float(table.std(correction=0))
        )
        best, least = module.eval().export(), math.inf
        for step in range(self.steps + 1):
            if step % CHECK_EVERY == 0 or step == self.steps:
                error = float((weights * (module.dense() - table).square().sum(dim=1)).sum())
                if error < least:
                    best, least = module.export(), error
            some = torch.randint(len(table), (min(BATCH, len(table)),), generator=generator)
            with torch.enable_grad():
                if softmax:
                    module.train()
                    vectors = module(some)
                else:
                    vectors = module.quantizer.decode(module.quantizer.encode(table[some]))
                errors = (vectors - table[some]).square().mean(dim=1)
                optimizer.zero_grad()
                (weights[some] * errors).mean().backward()
            optimizer.step()
        return best.eval()
