"""Input tables that learn their codes with the task, beside full tables trained alike.

A language model on the Penn Treebank and a classifier of AG News, found through SMALTI_DATA;
some minutes an arm. Prints a table as Markdown:

    python examples/end_to_end.py [--task classifier] [--seeds 3] [--epochs 3] [--keep runs]
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from smalti.embeddings import Compressor
from smalti.embeddings.differentiable import Differentiable, compression_ratio
from smalti.recipes import language_model, text_classifier

TASKS = {"language-model": language_model.train, "classifier": text_classifier.train}
# Widths are 200 and 300: parts of 2 and of 3 numbers.
TABLES: dict[str, Compressor | None] = {
    "full": None,
    "softmax": Differentiable("softmax", num_codebooks=100, codebook_size=32),
    "centroid": Differentiable(
        "centroid", num_codebooks=100, codebook_size=32, distance_norm="none"
    ),
}


def outcome(
    task: str, name: str, seed: int, epochs: dict[str, int], keep: Path | None
) -> dict[str, Any]:
    """Train one arm; a result that is kept already is not computed again."""
    file = keep / f"{task}-{name}-{seed}.json" if keep else None
    if file and file.exists():
        found: dict[str, Any] = json.loads(file.read_text())
        return found
    checkpoint = file.with_suffix(".pt") if file else None
    made = TASKS[task](TABLES[name], seed=seed, checkpoint=checkpoint, **epochs).as_dict()
    if file and checkpoint:
        file.write_text(json.dumps(made, indent=1))
        checkpoint.unlink()
    return made


def ratio(found: dict[str, Any]) -> str:
    """By the paper's formula and, of whole bits, as saved."""
    spec = found["embedding"]
    if spec is None:
        return "1"
    names = ("num_codebooks", "codebook_size", "shared")
    formula = compression_ratio(found["rows"], found["dim"], *(spec[name] for name in names))
    return f"{formula.ideal:.1f} ({found['compression_ratio']:.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description="Codes that are learned with the task.")
    parser.add_argument("--task", choices=list(TASKS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, help="fewer or more than the recipes' own")
    parser.add_argument("--keep", type=Path, help="a folder for results and checkpoints")
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    print("| task | table | ratio (saved) | test | against full | exported = trained | seconds |")
    print("|---" * 7 + "|")
    epochs = {} if options.epochs is None else {"epochs": options.epochs}
    for task in [options.task] if options.task else TASKS:
        full = 0.0
        for name in TABLES:
            runs = [
                outcome(task, name, seed, epochs, options.keep) for seed in range(options.seeds)
            ]
            tests = [run["test"] for run in runs]
            score = statistics.mean(tests)
            spread = f" ± {statistics.stdev(tests):.2f}" if len(tests) > 1 else ""
            full = full or score
            relative = task == "language-model"
            change = f"{100 * (score / full - 1):+.1f} %" if relative else f"{score - full:+.2f}"
            checks = {run["exported_equals_trained"] for run in runs}
            same = "-" if checks == {None} else "yes" if checks == {True} else "NO"
            seconds = statistics.mean(run["seconds"] for run in runs)
            print(
                f"| {task}, {runs[0]['metric']} | {name} | {ratio(runs[0])} | {score:.2f}{spread} "
                f"| {change} | {same} | {seconds:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
