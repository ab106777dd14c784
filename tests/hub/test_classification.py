"""Figures of classifiers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from smalti.data import Labelled
from smalti.errors import DataError, ShapeError
from smalti.hub.batching import batches
from smalti.hub.classification import (
    class_figures,
    class_scores,
    classification,
    model_classes,
)

metrics = pytest.importorskip("sklearn.metrics")


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_figures_are_scikit_learns(classes: int) -> None:
    chance = np.random.default_rng(classes)
    wanted = chance.integers(classes, size=300)
    predicted = np.where(chance.random(300) < 0.6, wanted, chance.integers(classes, size=300))
    average = "binary" if classes == 2 else "macro"
    found = class_figures(predicted, wanted, classes)
    assert found["accuracy"] == pytest.approx(100 * metrics.accuracy_score(wanted, predicted))
    assert found["f1"] == pytest.approx(100 * metrics.f1_score(wanted, predicted, average=average))
    assert found["matthews"] == pytest.approx(100 * metrics.matthews_corrcoef(wanted, predicted))


def test_a_class_that_does_not_occur_counts_for_nothing() -> None:
    wanted, predicted = [0, 0, 2, 2], [0, 2, 2, 2]
    expected = metrics.f1_score(wanted, predicted, average="macro")
    assert class_figures(predicted, wanted, classes=5)["f1"] == pytest.approx(100 * expected)


def test_a_model_that_always_says_the_same_is_worth_nothing() -> None:
    found = class_figures([0, 0, 0, 0], [0, 0, 0, 1], classes=2)
    assert found == {"accuracy": 75.0, "f1": 0.0, "matthews": 0.0}


def test_predictions_and_classes_must_be_as_many() -> None:
    with pytest.raises(ShapeError):
        class_figures([1], [1, 0], classes=2)


@pytest.mark.parametrize(
    ("names", "classes", "expected"),
    [
        # By name, whatever the order and the case of letters.
        ({0: "negative", 1: "positive"}, ("Positive", "negative"), [1, 0]),
        # By number, also when one does not occur.
        ({0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}, ("0", "2"), [0, 2]),
        # By rank, when numbers begin elsewhere or names say nothing to the model.
        ({0: "LABEL_0", 1: "LABEL_1"}, ("1", "2"), [0, 1]),
        ({0: "LABEL_0", 1: "LABEL_1"}, ("entailment", "not_entailment"), [0, 1]),
    ],
)
def test_classes_find_the_models_numbers(
    make_model: Callable[[str], Any],
    names: dict[int, str],
    classes: tuple[str, ...],
    expected: list[int],
) -> None:
    model = make_model("bert-classifier")
    model.config.id2label = names
    assert model_classes(model, classes).tolist() == expected


def test_classes_that_can_not_be_the_models_are_refused(
    make_model: Callable[[str], Any],
) -> None:
    with pytest.raises(DataError, match=r"label_0.*sport"):
        model_classes(make_model("bert-classifier"), ("business", "sport", "world"))


def test_a_head_is_asked_for_each_text_and_pair(
    make_model: Callable[[str], Any], word_tokenizer: Any
) -> None:
    model = make_model("bert-classifier")
    first, second = ["w5 w6 w7", "w8", "w9 w10"], ["w11", "w12 w13 w14", "w20"]
    scores = class_scores(model, batches(word_tokenizer, first, second, batch_size=2))
    for one, other, row in zip(first, second, scores, strict=True):
        with torch.no_grad():
            alone = model(**word_tokenizer(one, other, return_tensors="pt")).logits[0]
        torch.testing.assert_close(row, alone, atol=1e-5, rtol=1e-5)
    wanted = scores.argmax(dim=1)
    examples = Labelled(first, second, wanted, ("0", "1"), "made up")
    made = batches(word_tokenizer, first, second)
    assert classification(model, made, examples)["accuracy"] == 100.0
    wrong = Labelled(first, second, 1 - wanted, ("0", "1"), "made up")
    assert classification(model, made, wrong)["accuracy"] == 0.0
