"""Product codes: a row is cut into parts, each part becomes the code of its nearest codeword.

Reference: Jegou, Douze, Schmid, "Product Quantization for Nearest Neighbor Search",
IEEE TPAMI 33(1), 2011, sections II-III; rotation: Ge, He, Ke, Sun, "Optimized Product
Quantization", IEEE TPAMI 36(4), 2014, section 3.1 (the non-parametric form).

Differs from the paper: rows can be weighted by how often they are used, codebooks are
stored as float16, and a second stage of codes may follow on what the first left over.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from smalti.embeddings.axes import even_axes
from smalti.embeddings.base import CompressedEmbedding, compressors
from smalti.embeddings.clustering import cluster, decode, means
from smalti.embeddings.coded import PRECISIONS, CodedTable, as_stored
from smalti.embeddings.coding import CodeMethod
from smalti.embeddings.weighting import row_weights
from smalti.errors import require
from smalti.quantizers.nearest import nearest
from smalti.quantizers.settings import count, flag


@compressors.register("product")
class Product(CodeMethod):
    """Codes of the parts of each row, by weighted k-means.

    Args:
        num_codebooks: How many parts a row is cut into; it must divide the width.
        codebook_size: Codewords a part; 256 makes a code one byte.
        rotation: Whether to learn a rotation that makes parts independent; it is stored
            with the table, width x width numbers.
        iterations: k-means steps.
        power: How much token counts matter: 0 not at all, 1 fully.
        precision: What codebooks are stored as: float32, float16 or int8.
    """

    example: ClassVar[dict[str, Any]] = {"num_codebooks": 6, "codebook_size": 16}

    def __init__(
        self,
        num_codebooks: int = 48,
        codebook_size: int = 256,
        rotation: bool = False,
        iterations: int = 20,
        power: float = 0.5,
        precision: str = "float16",
    ) -> None:
        super().__init__(num_codebooks, codebook_size, power, precision, PRECISIONS)
        self.rotation = flag("rotation", rotation)
        self.iterations = count("iterations", iterations)

    def _fit(
        self,
        table: Tensor,
        counts: Tensor | None,
        special: list[int],
        generator: torch.Generator,
    ) -> CompressedEmbedding:
        del special
        dim = table.shape[1]
        require(
            dim % self.num_codebooks == 0,
            f"num_codebooks must divide the width {dim}, got {self.num_codebooks}",
        )
        weights = row_weights(counts, len(table), self.power)
        turn = None
        if self.rotation:
            turn = self._learn_rotation(table, weights, generator)
            table = table @ turn.T
        parts = self._parts(table)
        codebooks, _ = cluster(parts, weights, self.codebook_size, self.iterations, generator)
        codebooks = as_stored(codebooks, self.precision)
        codes = nearest(parts, codebooks).T
        return CodedTable.holding(codes, codebooks.unsqueeze(1), turn, precision=self.precision)

    def outline(self, rows: int, dim: int) -> CodedTable:
        """One stage of codes; a rotation where it is asked for."""
        return CodedTable(
            rows,
            dim,
            self.num_codebooks,
            1,
            self.codebook_size,
            rotated=self.rotation,
            precision=self.precision,
        )

    def _parts(self, table: Tensor) -> Tensor:
        """Rows ``(rows, dim)`` as ``(num_codebooks, rows, width)``."""
        return table.view(len(table), self.num_codebooks, -1).transpose(0, 1).contiguous()

    def _learn_rotation(self, table: Tensor, weights: Tensor, generator: torch.Generator) -> Tensor:
        """Turns between clustering the turned rows and turning the rows to their codewords."""
        turn = even_axes(table, weights, self.num_codebooks)
        turned = self._parts(table @ turn.T)
        codewords, codes = cluster(turned, weights, self.codebook_size, 4, generator)
        for _ in range(self.iterations):
            found = decode(codewords, codes).transpose(0, 1).reshape(table.shape)
            left, _, right = torch.linalg.svd((found * weights[:, None]).T @ table)
            turn = left @ right
            turned = self._parts(table @ turn.T)
            codes = nearest(turned, codewords)
            codewords, _ = means(turned, codes, weights, codewords)
        return turn.half().float()
