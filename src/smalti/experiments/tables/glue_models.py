"""What the tables of fine-tuned models share: columns, settings, and compressors by name."""

from __future__ import annotations

from typing import Any

from smalti.experiments.fine_tuned.settings import LEARNED
from smalti.experiments.table import Metric, Scale

TASKS = ("CoLA", "SST-2", "MRPC", "STS-B", "QNLI", "RTE")
# What each is scored by.
MEASURES = {"CoLA": "Matthews", "MRPC": "F1", "STS-B": "Spearman"}

# Scales of arms that take minutes at the least.
LONG: tuple[Scale, ...] = ("laptop", "paper")

AVERAGE = Metric("average", "average score", "higher")
SCORES = tuple(
    Metric(f"score_{task}", f"{task}, {MEASURES.get(task, 'accuracy')}", "higher") for task in TASKS
)
# What can be said of CoLA where its correlation is small.
COLA_ACCURACY = Metric("accuracy_CoLA", "CoLA, accuracy", "higher")
AVERAGE_LEARNED = Metric("average_learned", f"average of {', '.join(LEARNED)}", "higher")
AVERAGES = (AVERAGE.name, AVERAGE_LEARNED.name)
CHANCE = (
    "With the published epochs and rate this small model hardly learns CoLA, QNLI (of 1,800 pairs) "
    "and RTE, and chance moves their scores: so the tasks that it learns are averaged as well."
)
LOSS = Metric("loss", "loss of the average")
SHARE = Metric("share", "bytes of the table, %")
PARAMETERS = Metric("parameter_share", "numbers as the paper counts, %")
COVERED = Metric("sentence_coverage", "examples without a changed row, %", "higher")
CHANGED = Metric("cosine_changed", "cosine of changed rows, %", "higher")
SEEN = Metric("cosine_seen", "cosine of rows that occur, %", "higher")
UNSEEN = Metric("cosine_unseen", "cosine of other rows, %", "higher")
ERROR = Metric("error", "relative error of changed rows")
MOVED = Metric("moved", "how far fine-tuning moved rows, relative")
FITTING = Metric("fit_seconds", "computing the codes, s")
RECOVERY = Metric("recovery_seconds", "looking rows up, s")
INFERENCE = Metric("inference_seconds", "running the model, s")

FINE_TUNED: dict[str, Any] = {
    "tasks": list(TASKS),
    "model": "all-MiniLM-L6-v2",
    "longest": 128,
    "epochs": 3,
    "epochs_of": {"MRPC": 5},
    "training.batch_size": 32,
    "training.learning_rate": 2e-5,
    "training.schedule": {"kind": "linear"},
    "training.clip_norm": 1.0,
    "training.checkpoint_every": 200,
    "training.keep_checkpoints": 1,
    "training.tensorboard": False,
}
# Half of the bits make a step more than twice as fast on a processor that has them. SST-2 alone
# has more than 10,000 examples to learn from, and QNLI alone more than 1,500 to test.
LAPTOP: dict[str, Any] = {
    "training.precision": "bf16",
    "most": 10_000,
    "test_most": 1_500,
}
TINY: dict[str, Any] = {
    "model": {"rows": 400, "dim": 24},
    "longest": 32,
    "most": 60,
    "test_most": 30,
    "epochs": 1,
    "epochs_of": {},
    "training.learning_rate": 1e-3,
}
PUBLISHED: dict[str, Any] = {
    "model": "distilbert-base-uncased",
    "train_files": {"QNLI": "train.tsv"},
}
SCALES: dict[Scale, dict[str, Any]] = {"tiny": TINY, "laptop": LAPTOP, "paper": PUBLISHED}

ADDITIVE = {
    "compressor": "compositional",
    "num_codebooks": 32,
    "codebook_size": 16,
    "power": 0.0,
    "precision": "float32",
}
UNKNOWN = {"compressor": "unknown", "row": "unknown"}


def partial(keep: float, rest: dict[str, Any], kept: str = "float32") -> dict[str, Any]:
    """Some of the rows that occur, and how the others are coded."""
    return {"compressor": "partial", "keep": keep, "kept": kept, "rest": rest}


def sparse(keep: float, neighbours: int) -> dict[str, Any]:
    """The paper's method."""
    return partial(keep, {"compressor": "sparse", "neighbours": neighbours})


def components(keep: float, rank: int) -> dict[str, Any]:
    """The paper's baseline of principal components."""
    rest = {"compressor": "low_rank", "rank": rank, "precision": "float32", "power": 0.0}
    return partial(keep, rest)


def chosen(*options: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Settings of an arm: the best of these on the validation set."""
    return {"change": {"kind": "coded", "options": [[option] for option in options], **more}}


def sparse_of_best(keep: float, **more: Any) -> dict[str, Any]:
    """One to five neighbours, as the paper chooses."""
    return chosen(*(sparse(keep, neighbours) for neighbours in range(1, 6)), **more)


def components_of_best(keep: float) -> dict[str, Any]:
    """One to ten components, as the paper chooses."""
    return chosen(*(components(keep, rank) for rank in range(1, 11)))


def scores(average: float | None, *reported: float) -> dict[str, float]:
    """The paper's scores, in the order of the tasks."""
    made = {f"score_{task}": score for task, score in zip(TASKS, reported, strict=True)}
    return made if average is None else {"average": average, **made}
