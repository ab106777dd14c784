"""Weights of sparse codes that were computed in one table, used in another.

Reference:
    Tamura, Yoshinaga, Neishi, "Further Compressing Distilled Language Models via
    Frequency-aware Partial Sparse Coding of Embeddings", footnote 4; Sakuma, Yoshinaga,
    "Multilingual Model Using Cross-Task Embedding Projection", CoNLL 2019.

Differs from the paper:
    Nothing that is known: it tells of the experiment in a footnote, without numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor

from smalti.codes.packing import take
from smalti.embeddings import CompressedEmbedding, FullTable, PartialTable, SparseTable
from smalti.embeddings.neighbours import sum_lengths, units
from smalti.errors import ConfigError


@torch.no_grad()
def moved_to(table: CompressedEmbedding, rows: Tensor) -> None:
    """Give a table other kept rows and lengths, and leave its neighbours and weights.

    Args:
        table: Rows kept as float32 and sparse codes by them; it is changed.
        rows: ``(rows, dim)`` the other space.
    """
    kept = table.kept if isinstance(table, PartialTable) else None
    sparse = table.rest if isinstance(table, PartialTable) else None
    if not isinstance(kept, FullTable) or not isinstance(sparse, SparseTable):
        raise ConfigError("only sparse codes by rows that are kept whole can move")
    assert isinstance(table, PartialTable)  # or there were no kept rows
    ids = table.kept_ids()
    others = torch.ones(table.rows, dtype=torch.bool)
    others[ids] = False
    before, after = kept.vectors.norm(dim=1).double(), rows[ids].norm(dim=1).double()
    places = take(sparse.codes, torch.arange(sparse.rows), sparse.code_sizes)
    # Stored weights are for kept rows as they are; the paper's are for rows of length 1.
    weights = sparse.weights.double() * before[places]
    lengths = sum_lengths(weights, units(rows[ids]), places).clamp(min=1e-12)
    sparse.weights.copy_(weights / lengths[:, None] / after[places].clamp(min=1e-12))
    sparse.lengths.copy_(rows[others].norm(dim=1))
    kept.vectors.copy_(rows[ids])
