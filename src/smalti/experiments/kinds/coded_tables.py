"""Tables of codes without a task: their bytes, and the rank of what they can hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from smalti.analysis import rank
from smalti.embeddings.coded import CodedTable
from smalti.embeddings.differentiable import Differentiable, compression_ratio
from smalti.experiments.kinds.base import Kind, Measured, kinds


@kinds.register("table_size")
class TableSize(Kind):
    """Settings are ``rows``, ``dim``, ``num_codebooks``, ``codebook_size`` and ``shared``."""

    def measure(self, settings: dict[str, Any], seed: int, place: Path) -> Measured:
        """Count the bytes of the tensors that a file would hold."""
        del seed, place
        rows, dim = settings.pop("rows"), settings.pop("dim")
        saved = Differentiable(**settings).outline(rows, dim).state_dict()
        total = sum(tensor.numel() * tensor.element_size() for tensor in saved.values())
        return Measured(
            {
                "ratio": 4 * rows * dim / total,
                "formula_ratio": compression_ratio(rows, dim, **settings).ideal,
                "table_kb": total / 1000,
            }
        )


@kinds.register("table_rank")
class TableRank(Kind):
    """Settings are ``rows``, ``dim``, ``num_codebooks`` and ``codebook_size``."""

    def measure(self, settings: dict[str, Any], seed: int, place: Path) -> Measured:
        """Draw codes and codewords at random, and count the directions of the rows."""
        del place
        rows, dim = settings["rows"], settings["dim"]
        books, size = settings["num_codebooks"], settings["codebook_size"]
        generator = torch.Generator().manual_seed(seed)
        codes = torch.randint(size, (rows, books), generator=generator)
        codewords = torch.randn(books, 1, size, dim // books, generator=generator)
        table = CodedTable.holding(codes, codewords, parts=books, precision="float32")
        found = rank(table).numbers
        return Measured(
            {
                "rank": float(found["rank"]),
                "formula_rank": float(found["formula"]),
                "full_rank": float(min(rows, dim)),
                "codewords": float(books * size),
            }
        )
