"""Keeps the commonest rows well and codes the rest: frequency awareness around any method.

Reference: Partial sparse coding of the embeddings of fine-tuned language models (paper
"frequency-aware partial sparse coding"), sections 3.1-3.2: the split by token counts.

Differs from the paper: any method may code the rest, and any method may hold the kept
rows; special tokens are always kept; parts can be nested, so that rows get as many bytes
as they are worth.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from smalti.embeddings.base import (
    CompressedEmbedding,
    Compressor,
    build_compressor,
    build_table,
    compressors,
    tables,
)
from smalti.embeddings.border import checked_counts
from smalti.embeddings.full import Full, FullTable
from smalti.embeddings.integer import Integer, IntegerTable
from smalti.embeddings.membership import Membership
from smalti.embeddings.size import Size
from smalti.errors import ConfigError, require
from smalti.quantizers.settings import count, number

KEPT: dict[str, dict[str, Any]] = {
    "float32": {"compressor": "full", "precision": "float32"},
    "float16": {"compressor": "full", "precision": "float16"},
    "int8": {"compressor": "integer", "bits": 8},
    "int4": {"compressor": "integer", "bits": 4},
}


@tables.register("partial")
class PartialTable(CompressedEmbedding):
    """Some rows in one table, the others in a second.

    Args:
        rows: How many vectors.
        dim: Width of a vector.
        kept: The table of the kept rows, or its spec.
        rest: The table of the other rows, or its spec.
    """

    def __init__(self, rows: int, dim: int, kept: Any, rest: Any) -> None:
        super().__init__(rows, dim)
        self.kept = build_table(kept)
        self.rest = build_table(rest)
        require(
            self.kept.rows + self.rest.rows == rows and self.kept.dim == self.rest.dim == dim,
            f"{self.kept.rows} kept and {self.rest.rows} other rows don't make {rows} rows",
        )
        self.membership = Membership(rows)
        self.rest.attach(self.kept)

    def lookup(self, ids: Tensor) -> Tensor:
        """Each id from the table that has it."""
        chosen, kept_place, rest_place = self.membership(ids)
        if torch.compiler.is_compiling():
            kept = self.kept.lookup(kept_place.clamp(max=self.kept.rows - 1))
            rest = self.rest.lookup(rest_place.clamp(max=self.rest.rows - 1))
            return torch.where(chosen[:, None], kept, rest)
        first = torch.nonzero(chosen).flatten()
        if len(first) == len(ids):
            return self.kept.lookup(kept_place)
        second = torch.nonzero(~chosen).flatten()
        if len(second) == len(ids):
            return self.rest.lookup(rest_place)
        kept = self.kept.lookup(kept_place[first])
        rest = self.rest.lookup(rest_place[second])
        joined = kept.new_empty(len(ids), self.dim)
        joined.index_copy_(0, first, kept)
        return joined.index_copy_(0, second, rest.to(kept.dtype))

    def score(self, hidden: Tensor) -> Tensor:
        """The scores of both tables, put back in the order of ids."""
        both = torch.cat([self.kept.score(hidden), self.rest.score(hidden)], dim=-1)
        chosen, kept_place, rest_place = self.membership(
            torch.arange(self.rows, device=hidden.device)
        )
        return both[..., torch.where(chosen, kept_place, rest_place + self.kept.rows)]

    def size(self) -> Size:
        """Bytes of the tensors that are saved; those of rows kept one by one count as kept."""
        bits = sum(bits.numel() * bits.element_size() for bits in self.membership.buffers())
        return as_kept(self.kept, self.kept.size()) + self.rest.size() + Size(other=bits)

    def kept_ids(self) -> Tensor:
        """The ids of the kept rows, in order."""
        chosen, _, _ = self.membership(torch.arange(self.rows))
        return torch.nonzero(chosen).flatten()


@compressors.register("partial")
class Partial(Compressor):
    """Keep the commonest rows, code the rest.

    Args:
        keep: How many rows to keep: a whole number of rows, or a share (above 0, at most
            1.0) of the rows that occur.
        kept: How kept rows are stored: "float32", "float16", "int8", "int4", or any
            compressor.
        rest: The compressor of all other rows.
    """

    example: ClassVar[dict[str, Any]] = {
        "keep": 40,
        "kept": "int8",
        "rest": {"compressor": "product", "num_codebooks": 6, "codebook_size": 16},
    }

    def __init__(
        self,
        keep: float = 1000,
        kept: Any = "float32",
        rest: Any = "product",
    ) -> None:
        if isinstance(keep, float):
            self.keep: float = number(
                "keep, as a share of the rows that occur,", keep, above=0, most=1
            )
        else:
            self.keep = count("keep", keep)
        if isinstance(kept, str) and kept in KEPT:
            self.kept: Any = kept
        else:
            self.kept = build_compressor(kept)
        self.rest = build_compressor(rest)

    def outline(self, rows: int, dim: int) -> CompressedEmbedding:
        """Without counts there is no telling how many rows are kept."""
        del rows, dim
        raise ConfigError("partial needs token counts: ask for expected_size(..., counts=...)")

    def expected_size(
        self, rows: int, dim: int, *, counts: Tensor | None = None, special: Sequence[int] = ()
    ) -> Size:
        """The bytes of the kept rows, of the others, and of the bits that tell them apart."""
        return self._expected(rows, dim, checked_counts(counts, rows), special)

    def expected_size_beside(
        self, rows: int, dim: int, kept_rows: int, counts: Tensor | None
    ) -> Size:
        """As ``expected_size``; these rows may be such that never occur."""
        del kept_rows
        return self._expected(rows, dim, counts, ())

    def _expected(self, rows: int, dim: int, counts: Tensor | None, special: Sequence[int]) -> Size:
        rare = sorted({int(row) for row in special})
        mask = self._kept_rows(counts, rows, rare)
        assert counts is not None  # _kept_rows refuses None
        kept = int(mask.sum())
        kept_special = (mask.cumsum(0)[rare] - 1).tolist()
        with torch.device("meta"):
            bits = sum(b.numel() * b.element_size() for b in Membership(rows).buffers())
        keeper = self._keeper()
        held = keeper.expected_size(kept, dim, counts=counts[mask], special=kept_special)
        return (
            as_kept(keeper, held)
            + self.rest.expected_size_beside(rows - kept, dim, kept, counts[~mask])
            + Size(other=bits)
        )

    @property
    def heeds_metric(self) -> bool:
        """Whether it matters to either part."""
        return self._keeper().heeds_metric or self.rest.heeds_metric

    def under(self, metric: Tensor) -> Partial:
        """Both parts learn what errors cost."""
        made = copy.copy(self)
        made.kept, made.rest = self._keeper().under(metric), self.rest.under(metric)
        return made

    def prepared(self, table: Tensor) -> Partial:
        """The rest is prepared with the whole table, also below several tiers."""
        made = copy.copy(self)
        made.rest = self.rest.prepared(table)
        return made

    def _keeper(self) -> Compressor:
        return build_compressor(KEPT[self.kept] if isinstance(self.kept, str) else self.kept)

    def _kept_rows(self, counts: Tensor | None, rows: int, special: list[int]) -> Tensor:
        """Which rows are kept, ``(rows,)`` bool."""
        if counts is None:
            raise ConfigError(
                "partial keeps the commonest rows and needs token counts: pass counts="
            )
        chosen = commonest(counts, self.keep, special)
        require(
            0 < len(chosen) < rows,
            f"keep={self.keep} keeps {len(chosen)} of {rows} rows and leaves nothing to code",
        )
        mask = torch.zeros(rows, dtype=torch.bool)
        mask[chosen] = True
        return mask

    def _fit(
        self,
        table: Tensor,
        counts: Tensor | None,
        special: list[int],
        generator: torch.Generator,
    ) -> CompressedEmbedding:
        mask = self._kept_rows(counts, len(table), special)
        assert counts is not None  # _kept_rows refuses None
        keeper = self._keeper()
        kept_special = (mask.cumsum(0)[special] - 1).tolist()
        kept = keeper._fit(table[mask], counts[mask], kept_special, generator)
        rest = self.rest.prepared(table).fit_beside(table[~mask], kept, counts[~mask], generator)
        made = PartialTable(len(table), table.shape[1], kept, rest)
        made.membership.fill(mask)
        return made


def as_kept(rows: CompressedEmbedding | Compressor, size: Size) -> Size:
    """Bytes of rows that are kept one by one, whole or as integers, are bytes of kept rows."""
    single = isinstance(rows, (FullTable, Full, IntegerTable, Integer))
    return Size(kept=size.total) if single else size


def commonest(counts: Tensor, keep: float, special: list[int]) -> Tensor:
    """The ids to keep: special ones, then by falling count, equal counts by id.

    A share is rounded up, and is of the rows that occur; rows that never occur are kept
    only when a whole number asks for more than occur.

    Example:
        >>> commonest(torch.tensor([0.0, 5, 9, 0, 5]), 0.5, [0])
        tensor([0, 1, 2])
    """
    if isinstance(keep, float):
        # 0.07 of 100 is 7.000000000000001 and means 7.
        keep = math.ceil(round(keep * int((counts > 0).sum()), 6))
    order = torch.argsort(-counts, stable=True)
    kept = torch.cat([torch.tensor(special, dtype=torch.int64), order[: int(keep)]])
    unique: Tensor = torch.unique(kept)
    return unique
