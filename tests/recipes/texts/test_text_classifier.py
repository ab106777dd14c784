"""A classifier of texts with a full and with a coded input table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from smalti.data.labelled import Labelled
from smalti.recipes.texts import ClassifierConfig, train_text_classifier
from smalti.recipes.texts.text_classifier import (
    TextBatch,
    TextClassifier,
    accuracy,
    as_ids,
    batches,
    read_classes,
    words_of,
)
from smalti.training import TrainingSettings

Training = Callable[..., TrainingSettings]


def test_words_are_counted_in_lower_case_and_rare_ones_are_unknown() -> None:
    words = words_of(["The cat, the dog", "A cat!"])
    assert words == {"cat": 1, "the": 2}
    assert [ids.tolist() for ids in as_ids(["the CAT sat", "?"], words)] == [[2, 1, 0], [0]]


def test_a_text_is_the_mean_of_its_own_words() -> None:
    torch.manual_seed(0)
    model = TextClassifier(nn.Embedding(9, 4), 4, classes=3, hidden=5, dropout=0.5).eval()
    texts = [torch.tensor([1, 2, 2]), torch.tensor([8])]
    (batch,) = batches(texts, torch.tensor([2, 0]), [torch.tensor([1, 0])])
    assert batch.ids.tolist() == [8, 1, 2, 2]
    assert batch.labels.tolist() == [0, 2]
    means = torch.stack([model.embedding(text).mean(0) for text in (texts[1], texts[0])])
    torch.testing.assert_close(model(batch.ids, batch.lengths), model.head(means))


def test_a_batch_is_shared_by_whole_texts() -> None:
    batch = TextBatch(torch.arange(6), torch.tensor([3, 1, 2]), torch.tensor([0, 1, 2]))
    shares = [batch.share(part, 2) for part in range(2)]
    assert [share.ids.tolist() for share in shares] == [[0, 1, 2], [3, 4, 5]]
    assert [share.lengths.tolist() for share in shares] == [[3], [1, 2]]
    assert [share.labels.tolist() for share in shares] == [[0], [1, 2]]


def test_accuracy_counts_right_answers_in_percent() -> None:
    model = TextClassifier(nn.Embedding(4, 2), 2, classes=2, hidden=2, dropout=0.0).eval()
    with torch.no_grad():
        model.embedding.weight.copy_(torch.tensor([[1.0, 0], [0, 1], [1, 0], [0, 1]]))
        for layer in (model.head[1], model.head[4]):
            layer.weight.copy_(torch.eye(2))
            layer.bias.zero_()
    ids = [torch.tensor([place]) for place in range(4)]
    assert accuracy(model, ids, torch.tensor([0, 1, 0, 0])) == 75


def news(amount: int, seed: int) -> Labelled:
    """Texts whose words tell their class, most of the time."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(3, (amount,), generator=generator)
    noise = torch.rand(amount, 6, generator=generator) < 0.3
    words = torch.randint(20, (amount, 6), generator=generator)
    others = torch.randint(60, (amount, 6), generator=generator)
    numbers = torch.where(noise, others, words + 20 * labels[:, None])
    texts = [" ".join(f"w{number}" for number in row) for row in numbers.tolist()]
    return Labelled(texts, None, labels, ("a", "b", "c"), "made up")


def test_a_classifier_learns_what_words_mean(
    embedding: dict[str, Any] | None, training: Training
) -> None:
    settings = training(epochs=10, batch_size=32, learning_rate=0.01)
    config = ClassifierConfig(embedding=embedding, dim=16, training=settings)
    outcome = train_text_classifier(config, texts=(news(400, 0), news(200, 1))).outcome
    assert outcome.test["accuracy"] > 90
    assert outcome.valid["accuracy"] > 85
    assert outcome.rows == 61
    assert outcome.exported_equals_trained is (None if embedding is None else True)


@pytest.mark.data
def test_no_text_of_ag_news_is_both_trained_on_and_tested_on(
    public: Callable[[str], Path],
) -> None:
    public("text/agnews/test.tsv")
    known, test = read_classes("agnews")
    assert (len(test), test.classes) == (7600, ("Business", "Sci/Tech", "Sports", "World"))
    assert not set(known.first) & set(test.first)
    assert 9_980 < len(known) <= 9_993


@pytest.mark.data
def test_questions_of_trec_are_of_six_classes(public: Callable[[str], Path]) -> None:
    public("text/trec/trec_test.txt")
    known, test = read_classes("trec", limit=300)
    assert (len(known), len(test), len(known.classes), known.classes) == (300, 300, 6, test.classes)
