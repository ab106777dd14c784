"""Have the codes settled: how many change from one checkpoint to the next?

Reference:
    Chen, Li, Sun, "Differentiable Product Quantization for End-to-End Embedding Compression",
    ICML 2020, arXiv:1908.09756, appendix C.2 and figure 6.

Differs from the paper:
    A learning rate that falls lowers the rate of changes by itself: compare runs of the same
    schedule. The share of vectors with any changed code stands beside the share of codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from torch import Tensor

from smalti.analysis.figures import Lines, Series
from smalti.analysis.finding import Finding
from smalti.errors import DataError, ShapeError, require

# Codes of one checkpoint, after so many steps.
Checkpointed = tuple[int, Tensor]


def change_rate(runs: Mapping[str, Sequence[Checkpointed]], unit: str = "step") -> Finding:
    """The share of codes that differ from the checkpoint before.

    Args:
        runs: For each run, by name, the codes ``(n, ..., num_codebooks)`` of the same vectors
            at its checkpoints, in order.
        unit: What checkpoints are counted in.
    """
    require(len(runs) > 0, "expected at least one run, got none", DataError)
    found = {name: _of_run(name, checkpoints) for name, checkpoints in runs.items()}
    last = {name: rates[-1]["codes_changed"] for name, rates in found.items()}
    first = {name: rates[0]["codes_changed"] for name, rates in found.items()}
    told = "; ".join(
        f"{name + ': ' if len(runs) > 1 else ''}{first[name]:.1%} at first, {last[name]:.2%} at "
        "the end"
        for name in list(runs)[:6]
    )
    series = [
        Series(
            name,
            [rate["to"] for rate in rates],
            [100 * rate["codes_changed"] for rate in rates],
        )
        for name, rates in found.items()
    ]
    return Finding(
        name="change_rate",
        title="Have the codes settled?",
        caption=f"Codes that changed from one checkpoint to the next: {told}.",
        numbers={"runs": found, "unit": unit},
        figures=[
            Lines("Codes changed since the last checkpoint", unit, "% of codes changed", series)
        ],
    )


def _of_run(name: str, checkpoints: Sequence[Checkpointed]) -> list[dict[str, float]]:
    require(
        len(checkpoints) > 1,
        f"expected at least two checkpoints of {name}, got {len(checkpoints)}",
        DataError,
    )
    rates = []
    for (before, old), (after, new) in pairwise(checkpoints):
        require(
            old.shape == new.shape and old.dim() >= 2 and old.numel() > 0,
            f"expected codes of the same vectors, got {tuple(old.shape)} and {tuple(new.shape)}",
            ShapeError,
        )
        changed = old != new
        rates.append(
            {
                "from": before,
                "to": after,
                "codes_changed": float(changed.double().mean()),
                "vectors_changed": float(changed.any(dim=-1).double().mean()),
            }
        )
    return rates
