"""``python -m benchmarks``: print every ratio and write them as JSON."""

from __future__ import annotations

import argparse
import json
import platform
from dataclasses import asdict
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks import (
    cached_sampling,
    embedding_tables,
    image_training,
    memory,
    search,
    table_lookup,
    training_step,
    translation_latency,
    translation_training,
    whole_model,
)

QUESTIONS = {
    "training_step": training_step,
    "search": search,
    "memory": memory,
    "embedding_tables": embedding_tables,
    "table_lookup": table_lookup,
    "whole_model": whole_model,
    "image_training": image_training,
    "cached_sampling": cached_sampling,
    "translation_latency": translation_latency,
    "translation_training": translation_training,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("bench.json"))
    parser.add_argument("--only", choices=QUESTIONS, action="append")
    arguments = parser.parse_args()
    console = Console(stderr=True)
    chosen = arguments.only or list(QUESTIONS)
    ratios = [
        ratio
        for name in track(chosen, description="measuring", console=console)
        for ratio in QUESTIONS[name].run()
    ]
    table = Table("question", "way", "ours", "peer", "ratio", "wanted", box=None)
    for ratio in ratios:
        table.add_row(
            ratio.question,
            ratio.way,
            f"{ratio.ours:.1f} {ratio.unit}",
            f"{ratio.peer:.1f} {ratio.unit} ({ratio.peer_name})",
            f"{ratio.ratio:.2f}",
            f"{ratio.wanted:.2f}",
        )
    Console().print(table)
    content = {
        "ratios": [{**asdict(ratio), "ratio": ratio.ratio} for ratio in ratios],
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "capability": torch.backends.cpu.get_cpu_capability(),
            "threads": torch.get_num_threads(),
        },
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
    }
    arguments.output.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
