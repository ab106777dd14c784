"""A row as a few coordinates along the directions in which the rows vary most.

Reference:
    Pearson, "On lines and planes of closest fit to systems of points in space",
    Philosophical Magazine 2 (11), 1901; as a baseline: Tamura, Yoshinaga, Neishi, "Further
    Compressing Distilled Language Models via Frequency-aware Partial Sparse Coding of
    Embeddings", section 3.4 (PCA).

Differs from the paper:
    The directions are found on the rows that are coded, which is where they fit best, and
    rows weigh as much as they are used. The mean is kept apart from the directions. Saved as
    float16.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from smalti.embeddings.base import CompressedEmbedding, Compressor, compressors, tables
from smalti.embeddings.border import DTYPES
from smalti.embeddings.rounding import read_rows, storable
from smalti.embeddings.weighting import row_weights
from smalti.errors import require
from smalti.quantizers.gradients import straight_through
from smalti.quantizers.settings import count, flag, number, word


@tables.register("low_rank")
class LowRankTable(CompressedEmbedding):
    """Coordinates of each row times a basis, plus a mean.

    Args:
        rows: How many vectors.
        dim: Width of a vector.
        rank: How many coordinates a row has.
        centred: Whether a mean is added to every row.
        precision: What coordinates, basis and mean are saved as.
    """

    holds: ClassVar[Mapping[str, str]] = {
        "coordinates": "codes",
        "basis": "codebooks",
        "mean": "codebooks",
    }
    coordinates: Tensor
    basis: Tensor
    mean: Tensor

    def __init__(
        self, rows: int, dim: int, rank: int, centred: bool = True, precision: str = "float16"
    ) -> None:
        super().__init__(rows, dim)
        self.rank = count("rank", rank)
        require(rank <= dim, f"rank must be at most the width {dim}, got {rank}")
        self.centred = flag("centred", centred)
        self.precision = word("precision", precision, tuple(DTYPES))
        dtype = DTYPES[self.precision]
        self.store("coordinates", torch.zeros(rows, rank), dtype)
        self.store("basis", torch.zeros(rank, dim), dtype)
        if self.centred:
            self.store("mean", torch.zeros(dim), dtype)

    def lookup(self, ids: Tensor) -> Tensor:
        """Each row's combination of the basis.

        A matrix product rounds differently for few rows and for many; a weighted bag gives a
        row the same bits in any company. Only gradients take the product, which is faster.
        """
        coordinates = read_rows(self, "coordinates", ids)
        basis = self.read("basis").to(coordinates.dtype)
        every = torch.arange(self.rank, device=ids.device).expand(ids.shape[0], -1)
        vectors = functional.embedding_bag(
            every, basis.detach(), mode="sum", per_sample_weights=coordinates.detach()
        )
        if coordinates.requires_grad or basis.requires_grad:
            vectors = straight_through(coordinates @ basis, vectors)
        return vectors + self.read("mean") if self.centred else vectors

    def score(self, hidden: Tensor) -> Tensor:
        """Two narrow products instead of one wide one."""
        basis = self.read("basis")
        hidden = hidden.to(basis.dtype)
        scores = (hidden @ basis.T) @ self.read("coordinates").T
        return scores + (hidden @ self.read("mean")).unsqueeze(-1) if self.centred else scores


@compressors.register("low_rank")
class LowRank(Compressor):
    """Principal components of the table.

    Args:
        rank: How many coordinates a row has.
        centred: Whether the mean row is taken off first and stored.
        precision: What is stored, ``"float16"`` or ``"float32"``.
        power: How much token counts matter: 0 not at all, 1 fully.

    Example:
        >>> table = LowRank(rank=1).fit(torch.tensor([[1.0, 1.0], [3.0, 3.0], [5.0, 5.0]]))
        >>> table.dense().round(decimals=2)
        tensor([[1., 1.],
                [3., 3.],
                [5., 5.]])
    """

    example: ClassVar[Mapping[str, Any]] = {"rank": 6}

    def __init__(
        self, rank: int, centred: bool = True, precision: str = "float16", power: float = 0.5
    ) -> None:
        self.rank = count("rank", rank)
        self.centred = flag("centred", centred)
        self.precision = word("precision", precision, tuple(DTYPES))
        self.power = number("power", power, least=0, most=1)

    def outline(self, rows: int, dim: int) -> LowRankTable:
        """Coordinates and a basis."""
        return LowRankTable(rows, dim, self.rank, self.centred, self.precision)

    def _fit(
        self,
        table: Tensor,
        counts: Tensor | None,
        special: list[int],
        generator: torch.Generator,
    ) -> LowRankTable:
        del special, generator
        rows, dim = table.shape
        made = self.outline(rows, dim)
        dtype = DTYPES[self.precision]
        weights = row_weights(counts, rows, self.power).double()
        table = table.double()
        if self.centred:
            mean = (weights @ table) / weights.sum()
            made.mean.copy_(storable(mean, dtype))
            table = table - made.read("mean").double()
        scatter = (table * weights.unsqueeze(-1)).T @ table
        # Eigenvectors come in columns, by rising variance.
        basis = torch.linalg.eigh(scatter).eigenvectors[:, -self.rank :].flip(1).T
        made.basis.copy_(storable(basis, dtype))
        made.coordinates.copy_(storable(table @ basis.T, dtype))
        return made

    def start(self, rows: int, dim: int) -> LowRankTable:
        """An untrained table; its rows vary as those of ``nn.Embedding`` do at the start."""
        made = self.outline(rows, dim)
        nn.init.normal_(made.coordinates)
        nn.init.normal_(made.basis, std=self.rank**-0.5)
        return made
