"""How well a fine-tuned head names the classes, or follows the scores, of a labelled set.

All figures are multiplied by 100, as usual for such tasks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from smalti.data.labelled import Labelled
from smalti.errors import DataError, ShapeError, require
from smalti.hub.batching import Batches
from smalti.hub.library import Model
from smalti.hub.outputs import call
from smalti.hub.similarity import correlations


@torch.inference_mode()
def class_scores(model: Model, made: Batches, progress: bool | None = None) -> Tensor:
    """What the classifier's head gives, ``(texts, classes)`` float32 on the CPU."""
    rows = [
        call(model, inputs, model.device).logits.float().cpu()
        for inputs in made.watched("classifying", progress)
    ]
    return made.restored(rows)


def classification(
    model: Model, made: Batches, examples: Labelled, *, progress: bool | None = None
) -> dict[str, float]:
    """Accuracy, F1 and Matthews correlation, times 100.

    Args:
        model: A classifier of texts or of pairs.
        made: What ``batches`` makes of the examples' texts.
        examples: Texts with classes.
        progress: Whether to draw a bar on stderr; None does so on a terminal.
    """
    require(bool(examples.classes), f"expected classes, got scores in {examples.source}", DataError)
    wanted = model_classes(model, examples.classes)[examples.labels]
    predicted = class_scores(model, made, progress).argmax(dim=1)
    return class_figures(predicted.numpy(), wanted.numpy(), model.config.num_labels)


def regression(
    model: Model, made: Batches, examples: Labelled, *, progress: bool | None = None
) -> dict[str, float | None]:
    """Spearman's and Pearson's correlation of a head's one output with scores, times 100."""
    found = class_scores(model, made, progress)[:, 0]
    return correlations(found.numpy(), examples.labels.numpy())


def head_figures(
    model: Model, made: Batches, examples: Labelled, *, progress: bool | None = None
) -> dict[str, float | None]:
    """What applies to a head: with one output it follows scores, with more it names classes."""
    if examples.classes or model.config.num_labels != 1:
        return {**classification(model, made, examples, progress=progress)}
    return regression(model, made, examples, progress=progress)


def model_classes(model: Model, classes: Sequence[str]) -> Tensor:
    """The model's number for each class: by the class's name, its number, or its rank."""
    many = model.config.num_labels
    numbers = {str(name).casefold(): int(n) for n, name in model.config.id2label.items()}
    numbered = [str(n) for n in range(many)]
    if all(name.casefold() in numbers for name in classes):
        places = [numbers[name.casefold()] for name in classes]
    elif set(classes) <= set(numbered):
        places = [int(name) for name in classes]
    else:
        require(
            len(classes) == many,
            f"expected classes that the model knows ({', '.join(numbers)}) or {many} others, "
            f"got {', '.join(classes[:10])}",
            DataError,
        )
        places = list(range(many))
    return torch.tensor(places)


def class_figures(predicted: ArrayLike, wanted: ArrayLike, classes: int) -> dict[str, float]:
    """Accuracy, F1 and Matthews correlation, times 100.

    F1 is that of class 1 where there are two classes, and otherwise the mean over those that
    occur. A Matthews correlation without any variation is 0.

    Example:
        >>> class_figures([1, 1, 0, 0], [1, 0, 0, 0], classes=2)["accuracy"]
        75.0
    """
    given, right = np.asarray(predicted), np.asarray(wanted)
    require(
        given.shape == right.shape and given.ndim == 1 and len(given) > 0,
        f"expected as many predictions as classes, got {given.shape} and {right.shape}",
        ShapeError,
    )
    confusion = np.bincount(classes * right + given, minlength=classes**2)
    confusion = confusion.reshape(classes, classes)
    hits, actual, named = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    f1 = 2 * hits / np.maximum(actual + named, 1)
    f1 = f1[1:] if classes == 2 else f1[actual + named > 0]
    return {
        "accuracy": 100 * float(hits.sum() / len(right)),
        "f1": 100 * float(f1.mean()),
        "matthews": 100 * _matthews(hits.sum(), actual, named, len(right)),
    }


def _matthews(hits: int, actual: np.ndarray, named: np.ndarray, total: int) -> float:
    """The covariance of truth and prediction over the root of the product of their variances."""
    actual, named = actual.astype(np.float64), named.astype(np.float64)
    spread = (total**2 - named @ named) * (total**2 - actual @ actual)
    return float((hits * total - actual @ named) / np.sqrt(spread)) if spread > 0 else 0.0
