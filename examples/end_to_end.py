"""Input tables that learn their codes with the task, beside full tables trained alike.

A language model on the Penn Treebank and a classifier of AG News, found through SMALTI_DATA;
some minutes a table. Prints a table as Markdown:

    python examples/end_to_end.py [--task classifier] [--epochs 3]

`smalti reproduce dpq-language-model` does the same over seeds and sizes, and can be interrupted.
"""

from __future__ import annotations

import argparse
from typing import Any

from smalti.recipes.texts import (
    ClassifierConfig,
    LanguageModelConfig,
    train_language_model,
    train_text_classifier,
)

TASKS: dict[str, Any] = {
    "language-model": (LanguageModelConfig(), train_language_model),
    "classifier": (ClassifierConfig(), train_text_classifier),
}
# Widths are 200 and 300: parts of 2 and of 3 numbers.
SIZES = {"compressor": "differentiable", "num_codebooks": 100, "codebook_size": 32}
TABLES: dict[str, dict[str, Any] | None] = {
    "full": None,
    "softmax": {**SIZES, "choice": "softmax"},
    "centroid": {**SIZES, "choice": "centroid", "distance_norm": "none"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Codes that are learned with the task.")
    parser.add_argument("--task", choices=list(TASKS))
    parser.add_argument("--epochs", type=int, help="fewer or more than the recipes' own")
    options = parser.parse_args()
    print("| task | table | times smaller | test | exported = trained | seconds |")
    print("|---" * 6 + "|")
    for task in [options.task] if options.task else TASKS:
        config, train = TASKS[task]
        if options.epochs is not None:
            training = config.training.model_copy(update={"epochs": options.epochs})
            config = config.model_copy(update={"training": training})
        for name, embedding in TABLES.items():
            found = train(config.model_copy(update={"embedding": embedding})).outcome
            same = {None: "-", True: "yes", False: "NO"}[found.exported_equals_trained]
            print(
                f"| {task}, {found.metric} | {name} | {found.compression_ratio:.1f} "
                f"| {found.test[found.metric]:.2f} | {same} | {found.seconds:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
