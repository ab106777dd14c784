"""What a fine-tuned model scores with another table, what the table costs, and how close it is."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from statistics import mean

import torch
from torch import Tensor
from torch.nn import functional

from smalti.analysis import coverage
from smalti.data import Labelled
from smalti.experiments.fine_tuned.changes import Changed, changed, paper_parameters
from smalti.experiments.fine_tuned.settings import LEARNED, FineTunedSettings
from smalti.experiments.fine_tuned.subjects import Subject

Figures = dict[str, float]
# These add up over tasks; the mean is taken of all others.
TIMINGS = ("fit_seconds", "recovery_seconds", "inference_seconds")
# These are shown for each task too.
SINGLE = ("score", "loss", "accuracy", "share", "parameter_share", "sentence_coverage")


def measured(
    subject: Subject, settings: FineTunedSettings, place: Path
) -> tuple[Figures, dict[str, str]]:
    """The figures of one task, and in words how its table was made."""
    made = changed(subject, settings, place)
    began = time.process_time()
    figures = subject.figures(made.dense)
    seconds = time.process_time() - began
    score = subject.score(figures)
    found = {
        "score": score,
        "loss": subject.score(subject.original) - score,
        "bytes": float(made.bytes),
        "share": 100 * made.bytes / subject.table.dense_bytes,
        "parameter_share": 100 * paper_parameters(made) / subject.table.vectors.numel(),
        "fit_seconds": made.seconds,
        **closeness(subject.table.vectors, made.dense, subject.table.counts),
        **_moved(subject),
        **_covered(subject, made.dense),
        "recovery_seconds": _recovery(subject, made),
        "inference_seconds": seconds,
    }
    if "accuracy" in figures:
        found["accuracy"] = figures["accuracy"]
    return found, {"table": made.words}


def over_tasks(found: Mapping[str, Figures]) -> Figures:
    """Means over tasks, sums of seconds, and some figures of each task."""
    names = dict.fromkeys(name for figures in found.values() for name in figures)
    made: Figures = {}
    for name in names:
        values = [figures[name] for figures in found.values() if name in figures]
        made[name] = sum(values) if name in TIMINGS else mean(values)
    made["average"] = made.pop("score")
    if found.keys() >= set(LEARNED):
        made["average_learned"] = mean(found[task]["score"] for task in LEARNED)
    for task, figures in found.items():
        made |= {f"{name}_{task}": figures[name] for name in SINGLE if name in figures}
    return made


def closeness(before: Tensor, after: Tensor, counts: Tensor) -> Figures:
    """Mean cosines of rows with what they were, in percent, and their error.

    Args:
        before: ``(rows, dim)``.
        after: The same rows, some of them others.
        counts: ``(rows,)`` how often each occurs.
    """
    other = (before != after).any(dim=1)
    # A row of zeros has no direction; as long as it stays so, it is what it was.
    cosines = functional.cosine_similarity(before, after, dim=1).where(other, torch.ones(()))
    errors = (after - before).norm(dim=1) / before.norm(dim=1).clamp(min=1e-12)
    masks = {"cosine_changed": other, "cosine_seen": counts > 0, "cosine_unseen": counts == 0}
    made = {
        name: 100 * float(cosines[mask].mean()) for name, mask in masks.items() if bool(mask.any())
    }
    # Where nothing changed, nothing is lost.
    return {"cosine_changed": 100.0, **made, "error": float(errors[other].mean().nan_to_num())}


def covered(examples: Labelled) -> list[str]:
    """Texts to count coverage on: a pair counts as one."""
    if examples.second is None:
        return examples.first
    return [" ".join(pair) for pair in zip(examples.first, examples.second, strict=True)]


def _covered(subject: Subject, dense: Tensor) -> Figures:
    """Rows that did not change, as a share of test tokens and of whole examples."""
    same = torch.nonzero((dense == subject.table.vectors).all(dim=1)).flatten()
    texts = covered(subject.split.test)
    found = coverage(texts, subject.opened.tokenizer, same, subject.table.rows).numbers
    return {name: 100 * found[name] for name in ("token_coverage", "sentence_coverage")}


def _moved(subject: Subject) -> Figures:
    """How far fine-tuning moved the rows that occur, as a share of their lengths."""
    seen = subject.table.counts > 0
    before, after = subject.pretrained[seen], subject.table.vectors[seen]
    steps = (after - before).norm(dim=1) / before.norm(dim=1).clamp(min=1e-12)
    return {"moved": float(steps.mean())}


@torch.no_grad()
def _recovery(subject: Subject, made: Changed) -> float:
    """Seconds of the processor to look up the test set's rows as they are stored."""
    if made.table is None:
        return 0.0
    began = time.process_time()
    for batch in subject.made["test"].inputs:
        made.table(batch["input_ids"])
    return time.process_time() - began
