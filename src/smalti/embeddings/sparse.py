"""Rare rows as weighted sums of a few kept rows: locally linear coding.

Reference:
    Tamura, Yoshinaga, Neishi, "Further Compressing Distilled Language Models via
    Frequency-aware Partial Sparse Coding of Embeddings", section 2.2; the weights: Roweis,
    Saul, "Nonlinear dimensionality reduction by locally linear embedding", Science 290, 2000.

Differs from the paper:
    The small systems are made regular, about which the paper is silent. Ids take only the
    bits they need. ``constraint="none"`` drops the sum-to-one rule, which only costs cosine,
    since the length is stored. The stored weights are the paper's divided by the lengths of
    their kept rows and of the sum, so that a lookup measures nothing; it still is 2k + 1
    numbers a row. An output layer tied to the table works.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from smalti.codes.packing import pack, packed_bytes, take
from smalti.embeddings.base import (
    CompressedEmbedding,
    Compressor,
    build_compressor,
    compressors,
    tables,
)
from smalti.embeddings.border import DTYPES
from smalti.embeddings.full import FullTable
from smalti.embeddings.neighbours import (
    barycentre_weights,
    least_squares_weights,
    nearest_by_cosine,
    sum_lengths,
    units,
)
from smalti.embeddings.rounding import read_rows, storable
from smalti.embeddings.size import Size
from smalti.errors import ConfigError, require
from smalti.quantizers.settings import count, number, word

CONSTRAINTS = ("sum-to-one", "none")
# A shorter sum of unit vectors is what rounding left; the nearest neighbour stands in.
SHORTEST_SUM = 1e-4
# A kept row shorter than this share of the average is no direction for others: it would need
# weights beyond float16.
SHORTEST_SOURCE = 1e-3


def parameters(kept_rows: int, rest_rows: int, dim: int, neighbours: int) -> int:
    """How many numbers a sparsely coded table has, as the paper counts them.

    Kept rows take ``dim`` numbers each, the others an id and a weight for each neighbour and
    their length. The paper counts an id as a whole number; :meth:`CompressedEmbedding.size`
    counts bytes.

    Example:
        >>> parameters(kept_rows=10_000, rest_rows=20_522, dim=768, neighbours=5)
        7905742
    """
    return kept_rows * dim + (2 * neighbours + 1) * rest_rows


@tables.register("sparse")
class SparseTable(CompressedEmbedding):
    """Rows as weighted sums of the rows of another table, to which it must be attached.

    A row is ``length * sum(weight * kept row)``; with the fitted weights the sum has length 1.

    Args:
        rows: How many vectors.
        dim: Width of a vector.
        sources: How many rows the other table has.
        neighbours: How many of them make up a vector.
        precision: What weights and lengths are saved as.
    """

    holds: ClassVar[Mapping[str, str]] = {
        "codes": "codes",
        "weights": "codes",
        "lengths": "codes",
    }
    codes: Tensor
    weights: Tensor
    lengths: Tensor

    def __init__(
        self, rows: int, dim: int, sources: int, neighbours: int, precision: str = "float32"
    ) -> None:
        super().__init__(rows, dim)
        self.sources = count("sources", sources)
        self.neighbours = count("neighbours", neighbours)
        require(
            self.neighbours <= self.sources,
            f"{neighbours} neighbours need as many kept rows, there are {sources}: "
            "keep more rows or use fewer neighbours",
        )
        self.precision = word("precision", precision, tuple(DTYPES))
        self.code_sizes = (self.sources,) * self.neighbours
        self.register_buffer(
            "codes", torch.zeros(packed_bytes(rows, self.code_sizes), dtype=torch.uint8)
        )
        self.store("weights", torch.zeros(rows, neighbours), DTYPES[self.precision])
        self.store("lengths", torch.zeros(rows), DTYPES[self.precision])
        # In a tuple the other table is no submodule: its tensors are saved by its owner.
        self._attached: tuple[CompressedEmbedding, ...] = ()

    def attach(self, kept: CompressedEmbedding) -> None:
        """Read source rows from ``kept`` from now on."""
        require(
            (kept.rows, kept.dim) == (self.sources, self.dim),
            f"expected a table of {self.sources} rows of width {self.dim} to attach, "
            f"got {kept.rows} of {kept.dim}",
        )
        self._attached = (kept,)

    @property
    def kept(self) -> CompressedEmbedding:
        """The table that holds the source rows."""
        if not self._attached:
            raise ConfigError("a sparse table reads the rows of another: attach(kept) first")
        return self._attached[0]

    def lookup(self, ids: Tensor) -> Tensor:
        """Gather kept rows and add them up by weight; a row's length is part of the weights."""
        weights = read_rows(self, "weights", ids) * read_rows(self, "lengths", ids)
        places, kept = take(self.codes, ids, self.code_sizes), self.kept
        if isinstance(kept, FullTable) and kept.vectors.dtype == weights.dtype:
            source = kept.vectors
        else:
            source = kept.lookup(places.flatten()).to(weights.dtype)
            places = torch.arange(places.numel(), device=ids.device).view_as(places)
        return functional.embedding_bag(places, source, mode="sum", per_sample_weights=weights)

    def score(self, hidden: Tensor) -> Tensor:
        """Score the kept rows, then add up by weight."""
        return self.score_beside(self.kept.score(hidden))

    def score_beside(self, kept_scores: Tensor) -> Tensor:
        """Scores ``(n, rows)`` from the scores ``(n, sources)`` of the kept rows."""
        weights = self.read("weights") * self.read("lengths").unsqueeze(-1)
        places = take(
            self.codes, torch.arange(self.rows, device=self.codes.device), self.code_sizes
        )
        return functional.embedding_bag(
            places, kept_scores.T.to(weights.dtype), mode="sum", per_sample_weights=weights
        ).T


@compressors.register("sparse")
class Sparse(Compressor):
    """Codes rare rows by the common rows that are nearest to them.

    By itself it keeps every row with a count, and special ones, and codes the others;
    ``Partial(keep=..., rest=Sparse())`` chooses how many are kept, and how.

    Args:
        neighbours: How many kept rows make up a row, k in the paper.
        constraint: ``"sum-to-one"`` as in the paper, or ``"none"`` for a higher cosine.
        regularisation: What is added to the diagonal of a system, as a share of its trace;
            for ``"sum-to-one"``.
        precision: What weights and lengths are stored as, ``"float32"`` or ``"float16"``.
    """

    example: ClassVar[Mapping[str, Any]] = {"neighbours": 3}

    def __init__(
        self,
        neighbours: int = 5,
        constraint: str = "sum-to-one",
        regularisation: float = 1e-3,
        precision: str = "float32",
    ) -> None:
        self.neighbours = count("neighbours", neighbours)
        self.constraint = word("constraint", constraint, CONSTRAINTS)
        # The systems are summed up in float32; with less they could fail to be regular.
        self.regularisation = number("regularisation", regularisation, least=1e-6)
        self.precision = word("precision", precision, tuple(DTYPES))

    def outline(self, rows: int, dim: int) -> SparseTable:
        """By itself a shape without kept rows; ``expected_size`` knows of them."""
        return SparseTable(rows, dim, rows, self.neighbours, self.precision)

    def expected_size(
        self, rows: int, dim: int, *, counts: Tensor | None = None, special: Sequence[int] = ()
    ) -> Size:
        """The bytes of kept rows and of the codes of the others."""
        return self._keeping_all().expected_size(rows, dim, counts=counts, special=special)

    def expected_size_beside(
        self, rows: int, dim: int, kept_rows: int, counts: Tensor | None
    ) -> Size:
        """The bytes of the codes alone."""
        del counts
        with torch.device("meta"):
            return SparseTable(rows, dim, kept_rows, self.neighbours, self.precision).size()

    def _keeping_all(self) -> Compressor:
        return build_compressor("partial", keep=1.0, kept="float32", rest=self)

    def _fit(
        self,
        table: Tensor,
        counts: Tensor | None,
        special: list[int],
        generator: torch.Generator,
    ) -> CompressedEmbedding:
        if counts is None:
            raise ConfigError(
                "sparse codes rare rows by common ones and needs token counts: pass counts="
            )
        return self._keeping_all()._fit(table, counts, special, generator)

    @torch.no_grad()
    def fit_beside(
        self,
        table: Tensor,
        kept: CompressedEmbedding,
        counts: Tensor | None,
        generator: torch.Generator,
    ) -> SparseTable:
        """Code the rows of ``table`` by the rows of ``kept`` as they are decoded."""
        del counts, generator
        rows, dim = table.shape
        made = SparseTable(rows, dim, kept.rows, self.neighbours, self.precision)
        sources = kept.dense().float()
        source_lengths = sources.norm(dim=1)
        short = source_lengths <= SHORTEST_SOURCE * source_lengths.mean()
        sources = sources.masked_fill(short.unsqueeze(-1), 0.0)
        ids = nearest_by_cosine(table, sources, self.neighbours)
        weights = self._weights(units(table), units(sources), ids)
        weights = weights / source_lengths.double().masked_fill(short, torch.inf)[ids]
        lengths = table.norm(dim=1)
        dtype = DTYPES[self.precision]
        made.codes.copy_(pack(ids, made.code_sizes))
        made.weights.copy_(storable(weights, dtype))
        made.lengths.copy_(storable(lengths, dtype))
        made.attach(kept)
        return made

    def _weights(self, rows: Tensor, sources: Tensor, ids: Tensor) -> Tensor:
        """Weights for unit vectors, whose sums are unit vectors again."""
        if self.constraint == "none":
            weights = least_squares_weights(rows, sources, ids)
        else:
            weights = barycentre_weights(rows, sources, ids, self.regularisation)
        sums = sum_lengths(weights, sources, ids)
        short = sums < SHORTEST_SUM
        weights = weights / sums.masked_fill(short, 1.0).unsqueeze(-1)
        nearest = functional.one_hot(torch.zeros_like(ids[:, 0]), ids.shape[1])
        return torch.where(short.unsqueeze(-1), nearest.to(weights.dtype), weights)
