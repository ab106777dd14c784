"""How long does a compressed table take for a lookup and for logits, compared with a dense one?"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.timing import Ratio, interleaved
from smalti.embeddings import CodedTable, CompressedEmbedding, Integer, PartialTable, TurnedTable

ROWS, DIM, KEPT = 30_522, 384, 2000


def run() -> Iterator[Ratio]:
    with torch.inference_mode():
        yield from _lookups()
        yield from _logits()


def _lookups() -> Iterator[Ratio]:
    peer = nn.Embedding(ROWS, DIM)
    ids = common_ids(ROWS)
    tables: dict[str, tuple[CompressedEmbedding, float]] = {
        "48 codebooks of 256": (coded(ROWS, DIM, 48), 1 / 4),
        "2,000 rows as int8, the rest in 32 codebooks of 256": (tiered(), 1 / 6),
        "the same, turned": (turned(tiered()), 1 / 20),
    }
    for name, (table, wanted) in tables.items():
        medians = interleaved(lambda table=table: table(ids), lambda: peer(ids), 51)
        question = f"look up 32 x 64 of 30,522 x 384: {name}"
        yield Ratio(question, "torch alone", *medians, "torch.nn.Embedding", "ms", wanted)


def _logits() -> Iterator[Ratio]:
    table, weight = coded(49_152, 576, 72), torch.randn(49_152, 576)
    for count, pairs in ((1, 15), (64, 5)):
        hidden = torch.randn(count, 576)
        medians = interleaved(
            lambda hidden=hidden: table.logits(hidden),
            lambda hidden=hidden: functional.linear(hidden, weight),
            pairs,
        )
        question = f"logits for a batch of {count}, 49,152 x 576: 72 codebooks of 256"
        yield Ratio(question, "torch alone", *medians, "dense matrix product", "ms", wanted=1)


def common_ids(rows: int) -> Tensor:
    """A batch of 32 x 64 ids, low ones as much more often as words in a text."""
    generator = torch.Generator().manual_seed(0)
    return (rows ** torch.rand(32, 64, generator=generator)).long().clamp(max=rows - 1)


def coded(rows: int, dim: int, parts: int) -> CodedTable:
    """Any codes and codewords will do: time does not depend on them."""
    return CodedTable.holding(
        torch.randint(256, (rows, parts)), torch.randn(parts, 1, 256, dim // parts)
    ).eval()


def tiered() -> PartialTable:
    """The commonest rows as whole numbers, the rest as codes."""
    kept = Integer(8).fit(torch.randn(KEPT, DIM))
    table = PartialTable(ROWS, DIM, kept, coded(ROWS - KEPT, DIM, 32))
    table.membership.fill(torch.arange(ROWS) < KEPT)
    return table.eval()


def turned(table: CompressedEmbedding) -> TurnedTable:
    """A table whose rows are multiplied by a matrix when they are looked up."""
    made = TurnedTable(table.rows, table.dim, table)
    made.fill(torch.randn(table.dim, table.dim))
    return made.eval()
