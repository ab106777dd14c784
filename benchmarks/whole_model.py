"""How much slower, and how much smaller, is a model whose table is compressed?"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch

from benchmarks.table_lookup import coded, common_ids, tiered, turned
from benchmarks.timing import Ratio, interleaved
from smalti.hub import open_model, replace_table
from smalti.hub.footprint import memory_bytes

PEER = "all-MiniLM-L6-v2 as it is"


def run() -> Iterator[Ratio]:
    original = open_model("all-MiniLM-L6-v2").model
    rows, dim = original.get_input_embeddings().weight.shape
    ids = common_ids(rows)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    tables = {
        "48 codebooks of 256": coded(rows, dim, 48),
        "2,000 rows as int8, the rest in 32 codebooks": tiered(),
        "the same, turned": turned(tiered()),
    }
    for name, table in tables.items():
        model = replace_table(copy.deepcopy(original), table).eval()
        with torch.inference_mode():
            medians = interleaved(
                lambda model=model: model(**inputs), lambda: original(**inputs), 20
            )
        question = f"a batch of 32 x 64 tokens, table in {name}"
        yield Ratio(question, "torch alone", *medians, PEER, "ms", wanted=0.95)
        held = [memory_bytes(one)["total"] / 1e6 for one in (model, original)]
        question = f"parameters and buffers, table in {name}"
        yield Ratio(question, "torch alone", *held, PEER, "MB", wanted=1.9)
