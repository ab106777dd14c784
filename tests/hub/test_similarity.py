"""Correlations of cosines and scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from smalti.data import Labelled
from smalti.errors import DataError, ShapeError
from smalti.hub.batching import batches
from smalti.hub.pooling import encode
from smalti.hub.similarity import correlations, distinct, ranks, similarity

stats = pytest.importorskip("scipy.stats")


def pairs(first: list[str], second: list[str] | None, scores: list[float]) -> Labelled:
    return Labelled(first, second, torch.tensor(scores), (), "made up")


@pytest.mark.parametrize("levels", [3, 1000])
def test_correlations_are_scipys_with_and_without_ties(levels: int) -> None:
    chance = np.random.default_rng(0)
    one = chance.integers(levels, size=400).astype(float)
    other = one + chance.integers(levels, size=400)
    found = correlations(one, other)
    assert found["spearman"] == pytest.approx(100 * stats.spearmanr(one, other).statistic)
    assert found["pearson"] == pytest.approx(100 * stats.pearsonr(one, other).statistic)
    np.testing.assert_allclose(ranks(one), stats.rankdata(one))


def test_a_side_without_variation_has_no_correlation() -> None:
    assert correlations([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) == {"spearman": None, "pearson": None}


def test_predictions_and_scores_must_be_as_many() -> None:
    with pytest.raises(ShapeError):
        correlations([1.0, 2.0], [1.0, 2.0, 3.0])


def test_each_text_is_read_once() -> None:
    texts, first, second = distinct(pairs(["a", "b", "a"], ["b", "c", "a"], [1.0, 2.0, 3.0]))
    assert texts == ["a", "b", "c"]
    assert first.tolist() == [0, 1, 0]
    assert second.tolist() == [1, 2, 0]


def test_single_texts_are_refused() -> None:
    with pytest.raises(DataError, match="made up"):
        distinct(pairs(["a", "b"], None, [1.0, 2.0]))


def test_cosines_of_the_two_vectors_of_a_pair_are_compared_with_scores(
    make_model: Callable[[str], Any], word_tokenizer: Any
) -> None:
    model = make_model("bert-encoder")
    first = ["w5 w6", "w7 w8 w9", "w10", "w11 w12"]
    second = ["w5 w20", "w30", "w7 w8 w9", "w40 w41 w42"]
    examples = pairs(first, second, [0.5, 3.0, 2.0, 4.5])
    made = batches(word_tokenizer, distinct(examples)[0], batch_size=3)
    one, other = (encode(model, word_tokenizer, side).numpy() for side in (first, second))
    expected = stats.pearsonr((one * other).sum(axis=1), [0.5, 3.0, 2.0, 4.5]).statistic
    found = similarity(model, made, examples)["pearson"]
    assert found == pytest.approx(100 * expected, abs=1e-3)
