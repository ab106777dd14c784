"""How well cosines of sentence vectors follow people's scores of sentence pairs.

Correlations are multiplied by 100, as usual for such tasks.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from smalti.data.labelled import Labelled
from smalti.errors import DataError, ShapeError, require
from smalti.hub.batching import Batches
from smalti.hub.library import Model
from smalti.hub.pooling import encode_batches


def distinct(pairs: Labelled) -> tuple[list[str], Tensor, Tensor]:
    """The texts of all pairs, each once, and where the first and the second of each pair are."""
    if pairs.second is None or pairs.classes:
        raise DataError(f"expected scored pairs of texts, got others in {pairs.source}")
    places: dict[str, int] = {}
    first = [places.setdefault(text, len(places)) for text in pairs.first]
    second = [places.setdefault(text, len(places)) for text in pairs.second]
    return list(places), torch.tensor(first), torch.tensor(second)


def similarity(
    model: Model,
    made: Batches,
    pairs: Labelled,
    *,
    pooling: str = "mean",
    progress: bool | None = None,
) -> dict[str, float | None]:
    """Spearman's and Pearson's correlation of cosines and scores, times 100.

    Args:
        model: A transformer.
        made: What ``batches`` makes of the texts that :func:`distinct` gives.
        pairs: Pairs of texts with scores.
        pooling: How a text's tokens become a vector.
        progress: Whether to draw a bar on stderr; None does so on a terminal.
    """
    texts, first, second = distinct(pairs)
    require(
        len(texts) == len(made),
        f"expected batches of the pairs' {len(texts)} texts, got {len(made)}",
        ShapeError,
    )
    vectors = encode_batches(model, made, pooling, progress)
    cosines = (vectors[first].double() * vectors[second].double()).sum(dim=1)
    return correlations(cosines.numpy(), pairs.labels.numpy())


def correlations(predicted: ArrayLike, scores: ArrayLike) -> dict[str, float | None]:
    """Spearman's and Pearson's correlation, times 100; None where one side is all the same.

    Example:
        >>> correlations([1, 2, 3, 4], [1, 2, 2, 9])["spearman"]
        94.86832980505137
    """
    one, other = np.asarray(predicted, np.float64), np.asarray(scores, np.float64)
    require(
        one.shape == other.shape and one.ndim == 1 and len(one) > 1,
        f"expected as many predictions as scores, at least two, got {one.shape} and {other.shape}",
        ShapeError,
    )
    return {"spearman": _pearson(ranks(one), ranks(other)), "pearson": _pearson(one, other)}


def ranks(values: np.ndarray) -> np.ndarray:
    """The rank of each value from 1 on; equal values share the mean of theirs."""
    _, groups, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    means: np.ndarray = last - (counts - 1) / 2
    return means[groups]


def _pearson(one: np.ndarray, other: np.ndarray) -> float | None:
    one, other = one - one.mean(), other - other.mean()
    scale = np.sqrt((one @ one) * (other @ other))
    return float(100 * (one @ other) / scale) if scale > 0 else None
