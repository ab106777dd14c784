"""How the rows of a compressed table are stored: which rows, in which way, as which codes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from smalti.embeddings.base import BLOCK_ROWS, CompressedEmbedding, tables
from smalti.embeddings.coded import CodedTable
from smalti.embeddings.differentiable_table import DifferentiableEmbedding
from smalti.embeddings.integer import IntegerTable
from smalti.embeddings.partial import PartialTable
from smalti.embeddings.turned import TurnedTable


@dataclass(frozen=True, eq=False)
class Tier:
    """Rows that are stored alike.

    Args:
        words: How, in a few words.
        ids: ``(n,)`` the rows of the whole table.
        table: Their own table; row i of it is row ``ids[i]`` of the whole.
    """

    words: str
    ids: Tensor
    table: CompressedEmbedding

    @property
    def code_sizes(self) -> tuple[int, ...]:
        """How many codewords each codebook has; nothing where rows are no codes."""
        return self.table.code_sizes if isinstance(self.table, CodedTable) else ()

    @property
    def bytes(self) -> int:
        """What its tensors take."""
        return self.table.size().total

    @torch.no_grad()
    def codes(self) -> Tensor:
        """The codes ``(n, num_codebooks)`` of all rows, in as few bytes as they need."""
        if not isinstance(self.table, CodedTable):
            return torch.zeros(len(self.ids), 0, dtype=torch.uint8)
        kind = torch.uint8 if self.table.codebook_size <= 1 << 8 else torch.int32
        blocks = torch.arange(self.table.rows).split(BLOCK_ROWS)
        return torch.cat([self.table.take_codes(block).to(kind) for block in blocks])


def tiers(table: CompressedEmbedding) -> list[Tier]:
    """The parts of a table, kept rows before the rest; one for a table without parts.

    Example:
        >>> from smalti.embeddings import build_compressor
        >>> method = build_compressor("partial", keep=2, kept="int8", rest="unknown")
        >>> table = method.fit(torch.randn(5, 4), counts=torch.tensor([0, 9, 0, 3, 1]))
        >>> [(tier.words, tier.ids.tolist()) for tier in tiers(table)]
        [('integers of 8 bits', [1, 3]), ('unknown', [0, 2, 4])]
    """
    return _tiers(table, torch.arange(table.rows))


def _tiers(table: CompressedEmbedding, ids: Tensor) -> list[Tier]:
    if isinstance(table, TurnedTable):
        return _tiers(table.rest, ids)
    if isinstance(table, PartialTable):
        chosen, _, _ = table.membership(torch.arange(table.rows))
        return _tiers(table.kept, ids[chosen]) + _tiers(table.rest, ids[~chosen])
    if isinstance(table, DifferentiableEmbedding):
        table = table.export()
    return [Tier(_words(table), ids, table)]


def _words(table: CompressedEmbedding) -> str:
    if isinstance(table, CodedTable):
        many = len(table.code_sizes)
        return f"{many} code{'s' if many > 1 else ''} of {table.codebook_size}"
    if isinstance(table, IntegerTable):
        return f"integers of {table.bits} bits"
    return tables.name_of(type(table)).replace("_", " ")
