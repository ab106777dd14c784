"""Tasks of the GLUE benchmark: which files and columns, which score, and how they are split.

Reference:
    Wang, Singh, Michael, Hill, Levy, Bowman, "GLUE: A Multi-Task Benchmark and Analysis
    Platform for Natural Language Understanding", 2018; the split: Tamura, Yoshinaga, Neishi,
    "Further Compressing Distilled Language Models via Frequency-aware Partial Sparse Coding of
    Embeddings", section 3.1.

Differs from the paper:
    The score of CoLA is Matthews' correlation, as its numbers are, and not accuracy, as its
    text says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from smalti.data.labelled import Labelled, read_labelled
from smalti.data.locate import locate
from smalti.errors import ConfigError

# The paper's own.
SPLIT_SEED = 42
HELD_OUT = 0.1


@dataclass(frozen=True)
class GlueTask:
    """A task of the benchmark.

    Args:
        score: The figure that counts: ``"accuracy"``, ``"f1"``, ``"matthews"`` or
            ``"spearman"``.
        train: The name of its training file; of QNLI a part, as the whole is large.
        texts: The columns of text, where they are not found by their names.
        label: The column of the label, likewise.
    """

    score: str
    train: str = "train.tsv"
    texts: tuple[int, ...] = ()
    label: int | None = None


GLUE = {
    "CoLA": GlueTask("matthews", texts=(4,), label=2),
    "SST-2": GlueTask("accuracy"),
    "MRPC": GlueTask("f1"),
    "STS-B": GlueTask("spearman"),
    "QNLI": GlueTask("accuracy", train="train_subset2k.tsv"),
    "RTE": GlueTask("accuracy"),
}


class GlueSplit(NamedTuple):
    """Examples to learn from, to choose by, and to report."""

    train: Labelled
    valid: Labelled
    test: Labelled


def glue_task(name: str) -> GlueTask:
    """The task of that name."""
    if name not in GLUE:
        raise ConfigError(f"there is no task {name!r}; known: {', '.join(GLUE)}")
    return GLUE[name]


def read_glue(
    name: str,
    most: int | None = None,
    test_most: int | None = None,
    train_file: str | None = None,
) -> GlueSplit:
    """A task split as in the paper: a tenth of the training set validates, ``dev`` is the test.

    Args:
        name: The task.
        most: At most so many examples to learn from, and a tenth as many to choose by.
        test_most: At most so many to report.
        train_file: Another file to learn from than the task's own.
    """
    task = glue_task(name)
    file = locate(f"glue/{name}/{train_file or task.train}")
    known = read_labelled(file, texts=task.texts, label=task.label)
    test = read_labelled(
        locate(f"glue/{name}/dev.tsv"), texts=task.texts, label=task.label, classes=known.classes
    )
    order = np.random.default_rng(SPLIT_SEED).permutation(len(known))
    held = math.ceil(HELD_OUT * len(known))
    valid = order[:held][: None if most is None else math.ceil(HELD_OUT * most)]
    return GlueSplit(
        known.pick(order[held:][:most].tolist()),
        known.pick(valid.tolist()),
        test if test_most is None else test.pick(_some(len(test), test_most)),
    )


def _some(examples: int, most: int) -> list[int]:
    """Places of some examples: a file may be sorted."""
    order = np.random.default_rng(SPLIT_SEED).permutation(examples)
    return sorted(order[:most].tolist())
