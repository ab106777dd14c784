"""How many of 256 codewords stay alive, for each start of the moving averages.

Clustered vectors: 400 centres drawn from 2 N(0, I) in 16 dimensions, noise 0.3 N(0, I), 512
vectors a step, 1,200 steps. Prints the table of docs/quantizers.md as Markdown:

    python examples/collapse.py
"""

from __future__ import annotations

import statistics
import sys
from typing import Any

import torch

from smalti.codes import Usage
from smalti.quantizers import build
from smalti.quantizers.learning import STATISTICS

SEEDS = (0, 1, 2)
METHODS = {"hard": "vector", "soft": "soft_em"}
DECAYS = (0.99, 0.999)


def alive_and_error(seed: int, **settings: Any) -> tuple[int, float]:
    """Codes in use and distortion over 20,480 fresh vectors."""
    torch.manual_seed(seed)
    centres = 2 * torch.randn(400, 16)

    def batch() -> torch.Tensor:
        return centres[torch.randint(400, (512,))] + 0.3 * torch.randn(512, 16)

    layer = build({"dim": 16, "codebook_size": 256, **settings})
    for _ in range(1200):
        layer(batch())
    layer.eval()
    usage, errors = Usage(layer.code_sizes), []
    for _ in range(40):
        out = layer(batch())
        usage.update(out.codes)
        errors.append(float(out.metrics["distortion"]))
    return usage[0].in_use, statistics.mean(errors)


def cell(**settings: Any) -> str:
    results = [alive_and_error(seed, **settings) for seed in SEEDS]
    alive, errors = zip(*results, strict=True)
    return f"{min(alive)}-{max(alive)} / {statistics.mean(errors):.3f}"


def main() -> None:
    columns = [(name, decay) for name in METHODS for decay in DECAYS]
    print(
        "| statistics | " + " | ".join(f"{name}, decay {decay}" for name, decay in columns) + " |"
    )
    print("|---" * (1 + len(columns)) + "|")
    for statistics_start in STATISTICS:
        cells = [
            cell(
                quantizer=METHODS[name],
                learning={"kind": "ema", "decay": decay, "statistics": statistics_start},
                start="random",
                dead="keep",
            )
            for name, decay in columns
        ]
        print(f"| {statistics_start}, random start, nothing revived | " + " | ".join(cells) + " |")
        sys.stdout.flush()
    cells = [cell(quantizer=METHODS[name], decay=decay) for name, decay in columns]
    print("| **the defaults** | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
