"""One of the processes of test_ranks.py: learns a quantizer on its share of each batch."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import torch.distributed as dist

from smalti.codes import Usage
from smalti.quantizers import build, defer_updates, quantizers
from smalti.quantizers.updates import apply_updates

STEPS = 6
BATCH = 64


def batch(step: int, dim: int) -> torch.Tensor:
    return torch.randn(BATCH, dim, generator=torch.Generator().manual_seed(step))


def learn(name: str, settings: dict[str, object], rank: int, world: int) -> dict[str, torch.Tensor]:
    """The state after some steps, of which the last two are one accumulated step."""
    torch.manual_seed(0)
    layer = build({"quantizer": name, **quantizers.get(name).example, **settings})
    usage = Usage(layer.code_sizes)
    for step in range(STEPS):
        if step == STEPS - 2:
            defer_updates(layer)
        rows = BATCH // world
        x = batch(step, layer.dim)[rank * rows : (rank + 1) * rows]
        usage.update(layer(x).codes)
    apply_updates(layer)
    if rank == 0 and not name.startswith("differentiable"):
        # Only one rank has vectors in this step; the other takes part all the same. (Score
        # normalisation meets in the forward pass itself, which all ranks must call.)
        layer(batch(STEPS, layer.dim))
    apply_updates(layer)
    if world > 1:
        usage.merge_over_ranks()
    counts = {f"usage.{book}": count for book, count in enumerate(usage.counts)}
    return layer.state_dict() | counts


# No noise in the forward pass here: each process would draw its own.
CASES: dict[str, tuple[str, dict[str, object]]] = {
    "data start": ("vector", {}),
    "k-means start": ("vector", {"start": "kmeans++"}),
    "revived every step": (
        "vector", {"dead": {"kind": "revive", "threshold": 0.5, "period": 1}}),
    "gradient learning": ("vector", {"learning": "gradient"}),
    "product": ("product", {}),
    # Not from data: residuals of vectors that became codewords are zero, so codewords would tie.
    "residual": ("residual", {"start": "random"}),
    "softmax": ("differentiable_softmax", {}),
    "centroid": ("differentiable_centroid", {}),
}  # fmt: skip


if __name__ == "__main__":
    dist.init_process_group("gloo")
    states = {
        case: learn(*setting, dist.get_rank(), dist.get_world_size())
        for case, setting in CASES.items()
    }
    torch.save(states, Path(sys.argv[1]) / f"rank{dist.get_rank()}.pt")
    dist.destroy_process_group()
