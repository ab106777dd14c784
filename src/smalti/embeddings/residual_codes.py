"""Residual codes: each codeword is added to what the earlier ones left over.

Reference: Juang, Gray, "Multiple Stage Vector Quantization for Speech Coding", ICASSP
1982; beam search: Babenko, Lempitsky, "Additive Quantization for Extreme Vector
Compression", CVPR 2014, section 3.1.

Differs from the paper: rows can be weighted by how often they are used; a row may be cut
into parts that are coded side by side, because whole-row codebooks cost as much as many
codes; codebooks are fitted again, all stages at once by least squares, after the last stage.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from smalti.embeddings.base import CompressedEmbedding, compressors
from smalti.embeddings.clustering import cluster
from smalti.embeddings.coded import PRECISIONS, CodedTable, as_stored
from smalti.embeddings.coding import CodeMethod
from smalti.embeddings.least_squares import MOST_CODEWORDS, refit
from smalti.embeddings.weighting import row_weights
from smalti.errors import require
from smalti.quantizers.settings import count

# Numbers of a block of scores: 8 MB are 2,048 rows with a beam of 4 and 256 codewords.
BLOCK_SCORES = 1 << 21


@compressors.register("residual")
class ResidualCodes(CodeMethod):
    """Sums of codewords, found stage by stage with a beam.

    Args:
        num_codebooks: How many codewords are added up for a part.
        codebook_size: Codewords a stage.
        parts: How many parts a row is cut into; it must divide the width.
        beam: How many candidates survive each stage; 1 is greedy.
        iterations: k-means steps a stage.
        refits: How often all codebooks are fitted again to the codes, and codes to them.
        power: How much token counts matter: 0 not at all, 1 fully.
        precision: What codebooks are stored as: float32, float16 or int8.
    """

    example: ClassVar[dict[str, Any]] = {"num_codebooks": 3, "codebook_size": 16}

    def __init__(
        self,
        num_codebooks: int = 8,
        codebook_size: int = 256,
        parts: int = 1,
        beam: int = 4,
        iterations: int = 15,
        refits: int = 1,
        power: float = 0.5,
        precision: str = "float16",
    ) -> None:
        super().__init__(num_codebooks, codebook_size, power, precision, PRECISIONS)
        self.parts = count("parts", parts)
        self.beam = count("beam", beam)
        self.iterations = count("iterations", iterations)
        self.refits = count("refits", refits, least=0)
        together = self.num_codebooks * self.codebook_size
        require(
            self.refits == 0 or together <= MOST_CODEWORDS,
            f"refits solve for all codewords of a part at once, at most {MOST_CODEWORDS}, got "
            f"{together}: use fewer or smaller codebooks, or refits=0",
        )

    def _fit(
        self,
        table: Tensor,
        counts: Tensor | None,
        special: list[int],
        generator: torch.Generator,
    ) -> CompressedEmbedding:
        del special
        dim = table.shape[1]
        require(dim % self.parts == 0, f"parts must divide the width {dim}, got {self.parts}")
        weights = row_weights(counts, len(table), self.power)
        pieces = table.view(len(table), self.parts, -1).unbind(1)
        found = [self._fit_part(piece.contiguous(), weights, generator) for piece in pieces]
        codebooks = torch.stack([books for books, _ in found])
        codes = torch.cat([part for _, part in found], dim=1)
        return CodedTable.holding(codes, codebooks, precision=self.precision)

    def outline(self, rows: int, dim: int) -> CodedTable:
        """As many stages as codebooks."""
        return CodedTable(
            rows,
            dim,
            self.parts,
            self.num_codebooks,
            self.codebook_size,
            precision=self.precision,
        )

    def _fit_part(
        self, x: Tensor, weights: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Codebooks ``(stages, codebook_size, width)`` and codes ``(n, stages)`` of one part."""
        books: list[Tensor] = []
        left = x
        for _ in range(self.num_codebooks):
            made, _ = cluster(left[None], weights, self.codebook_size, self.iterations, generator)
            books.append(made[0])
            codes = search(x, torch.stack(books), self.beam)
            left = x - added_up(torch.stack(books), codes)
        codebooks = torch.stack(books)
        for _ in range(self.refits):
            codebooks = refit(x, codes, weights, codebooks)
            codes = improved(x, codebooks, codes, self.beam)
        codebooks = as_stored(codebooks, self.precision)
        return codebooks, improved(x, codebooks, codes, self.beam)


def added_up(codebooks: Tensor, codes: Tensor) -> Tensor:
    """The vectors ``(n, width)`` of codes ``(n, stages)``."""
    stages, size, _ = codebooks.shape
    places = codes + size * torch.arange(stages)
    return functional.embedding_bag(places, codebooks.flatten(0, 1), mode="sum")


def improved(x: Tensor, codebooks: Tensor, codes: Tensor, beam: int) -> Tensor:
    """Codes found anew, where they are nearer to ``x`` than the old ones ``(n, stages)``.

    A beam can miss the codes that the codebooks were fitted to.
    """
    found = search(x, codebooks, beam)
    old, new = ((x - added_up(codebooks, some)).square().sum(-1) for some in (codes, found))
    return torch.where((new < old)[:, None], found, codes)


def search(x: Tensor, codebooks: Tensor, beam: int) -> Tensor:
    """Codes ``(n, stages)`` whose codewords add up to nearly ``x`` ``(n, width)``.

    After each stage the ``beam`` best sums of every vector are carried on.
    """
    rows = max(1, BLOCK_SCORES // (beam * max(codebooks.shape[1:])))
    return torch.cat([_search_block(block, codebooks, beam) for block in x.split(rows)])


def _search_block(x: Tensor, codebooks: Tensor, beam: int) -> Tensor:
    stages, size, _ = codebooks.shape
    n = len(x)
    left = x[:, None]
    codes = x.new_zeros(n, 1, 0, dtype=torch.int64)
    for stage in range(stages):
        book = codebooks[stage]
        # Squared length of what would be left over: |r|^2 - 2 r.c + |c|^2.
        gaps = torch.addmm(book.square().sum(-1), left.flatten(0, 1), book.T, alpha=-2)
        gaps = gaps.view(n, -1, size).add_(left.square().sum(-1, keepdim=True))
        wide = min(beam, gaps[0].numel())
        best = gaps.flatten(1).topk(wide, dim=1, largest=False).indices
        parent, code = best // size, best % size
        parent += left.shape[1] * torch.arange(n)[:, None]
        left = functional.embedding(parent, left.flatten(0, 1)).sub_(
            functional.embedding(code, book)
        )
        codes = torch.cat([codes.flatten(0, 1)[parent], code[..., None]], dim=-1)
    winner = left.square().sum(-1).argmin(dim=1)
    return codes[torch.arange(n), winner]
