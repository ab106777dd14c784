"""A table whose codes are being learned with a task: queries, keys and values.

Every row has a query vector, keys choose its codes, and values are what codes stand for. All
of them learn inside a model; then queries and keys are dropped, and codes and values stay.
The method and its source are those of :mod:`smalti.embeddings.differentiable`.

The module in evaluation gives the exported table bit for bit: the codes of all rows are found
in one way, once, and kept until a parameter changes. In training every token of a batch is
quantized, also when its id repeats, because the statistics of the normalisation and the
regulariser are means over tokens.
"""

from __future__ import annotations

import math
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from smalti.embeddings.base import BLOCK_ROWS, CompressedEmbedding, tables
from smalti.embeddings.border import DTYPES
from smalti.embeddings.coded import CodedTable
from smalti.errors import require
from smalti.quantizers.base import Quantized
from smalti.quantizers.differentiable import DifferentiableCentroid, DifferentiableSoftmax
from smalti.quantizers.gradients import straight_through
from smalti.quantizers.settings import word

CHOICES: dict[str, type[DifferentiableSoftmax] | type[DifferentiableCentroid]] = {
    "softmax": DifferentiableSoftmax,
    "centroid": DifferentiableCentroid,
}


@tables.register("differentiable")
class DifferentiableEmbedding(CompressedEmbedding):
    """A table in training: takes the place of ``nn.Embedding``, becomes codes by ``export``.

    After each forward pass in training, ``loss`` holds what the method itself wants to
    minimise (zero for ``"softmax"``); add :func:`learning_loss` of the model to the task's.

    Args:
        rows: How many vectors.
        dim: Width of a vector.
        choice: ``"softmax"`` (DPQ-SX) or ``"centroid"`` (DPQ-VQ).
        num_codebooks: Codes a row, D in the paper; it must divide ``dim``.
        codebook_size: Codewords of each codebook, K.
        shared: One codebook for all parts of a row.
        distance_norm: How scores are normalised: ``"batch_per_group"``, ``"batch"``, ``"none"``.
        precision: What the exported codebooks are saved as. float16 halves their bytes;
            values are then read rounded in evaluation, here and in the exported table.
    """

    loss: Tensor
    _codes: tuple[Any, Tensor] | None

    def __init__(
        self,
        rows: int,
        dim: int,
        choice: str,
        num_codebooks: int,
        codebook_size: int,
        shared: bool = False,
        distance_norm: str = "batch_per_group",
        precision: str = "float32",
    ) -> None:
        super().__init__(rows, dim)
        self.choice = word("choice", choice, tuple(CHOICES))
        self.quantizer = CHOICES[self.choice](
            dim, num_codebooks, codebook_size, shared=shared, normalisation=distance_norm
        )
        require(
            choice != "softmax" or dim > num_codebooks,
            f"softmax needs parts at least 2 wide, a product of single numbers tells only two keys "
            f"apart: give fewer codebooks than {num_codebooks} for the width {dim}, or centroid",
        )
        self.num_codebooks, self.codebook_size = num_codebooks, codebook_size
        self.shared, self.distance_norm = shared, distance_norm
        self.precision = word("precision", precision, tuple(DTYPES))
        self.queries = nn.Parameter(torch.randn(rows, dim) / math.sqrt(dim))
        self._forget()

    def lookup(self, ids: Tensor) -> Tensor:
        """Quantized queries in training, the exported rows in evaluation."""
        queries = functional.embedding(ids, self.queries).float()
        if self.training:
            quantized: Quantized = self.quantizer(queries)
            self.loss = quantized.loss
            return quantized.vectors
        if torch.compiler.is_compiling():
            return straight_through(queries, self._rounded(self.quantizer(queries).vectors))
        return straight_through(queries, self._decode(self.codes()[ids]))

    def score(self, hidden: Tensor) -> Tensor:
        """Scores ``(n, rows)``; in training all rows are quantized as one batch."""
        if not self.training:
            return super().score(hidden)
        return hidden @ self.lookup(torch.arange(self.rows, device=hidden.device)).T.to(
            hidden.dtype
        )

    @torch.no_grad()
    def codes(self) -> Tensor:
        """The codes ``(rows, num_codebooks)`` of all rows, int32, under running statistics.

        Scores that differ in the last bit choose by the shape of the batch they stand in;
        so all rows are searched together, and the result is kept while nothing changes.
        """
        state = (self.queries, *self.quantizer.state_dict(keep_vars=True).values())
        versions = tuple((id(tensor), tensor._version) for tensor in state)
        if self._codes is None or self._codes[0] != versions:
            blocks = self.queries.split(BLOCK_ROWS)
            found = torch.cat([self.quantizer.encode(block.float()).int() for block in blocks])
            self._codes = (versions, found)
        return self._codes[1]

    @torch.no_grad()
    def dense(self) -> Tensor:
        """The whole table ``(rows, dim)`` as evaluation gives it."""
        return self._decode(self.codes()).to(self.output_dtype)

    @torch.no_grad()
    def export(self) -> CodedTable:
        """The table without queries and keys, equal to this one in evaluation."""
        every = torch.arange(self.codebook_size, device=self.queries.device)
        values = self.quantizer.decode(every[:, None].expand(-1, self.num_codebooks))
        books = values.view(self.codebook_size, self.num_codebooks, -1).transpose(0, 1)
        table = CodedTable.holding(
            self.codes(),
            (books[:1] if self.shared else books).unsqueeze(1),
            parts=self.num_codebooks,
            precision=self.precision,
        )
        return table.to(self.queries.device, self.output_dtype).train(self.training)

    def train(self, mode: bool = True) -> Self:
        """Set the mode; what evaluation kept is found anew."""
        self._forget()
        return super().train(mode)

    def _decode(self, codes: Tensor) -> Tensor:
        return self._rounded(self.quantizer.decode(codes))

    def _rounded(self, vectors: Tensor) -> Tensor:
        return vectors.to(DTYPES[self.precision]).float()

    def _forget(self) -> None:
        self.loss = torch.zeros((), device=self.queries.device)
        self._codes = None

    def __getstate__(self) -> dict[str, Any]:
        # A loss with a graph behind it can't be copied, and belongs to a batch that is gone.
        return {**self.__dict__, "loss": torch.zeros_like(self.loss), "_codes": None}


def learning_loss(model: nn.Module) -> Tensor:
    """The sum of what the differentiable tables of a model want to minimise themselves.

    Example:
        >>> table = DifferentiableEmbedding(10, 8, "softmax", num_codebooks=2, codebook_size=4)
        >>> learning_loss(nn.Sequential(table, nn.Linear(8, 1)))
        tensor(0.)
    """
    losses = [part.loss for part in model.modules() if isinstance(part, DifferentiableEmbedding)]
    return torch.stack(losses).sum() if losses else torch.zeros(())
