"""A small language model with a full and with a coded input table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from smalti.embeddings.base import Compressor
from smalti.embeddings.differentiable import Differentiable, compression_ratio
from smalti.embeddings.product import Product
from smalti.errors import ConfigError, DataError
from smalti.recipes.language_model import (
    LanguageModel,
    as_ids,
    penn_treebank,
    perplexity,
    train,
    windows,
)


def test_words_are_numbered_by_frequency_and_lines_end() -> None:
    ids, words = as_ids({"train": ["b a b", "b c"], "valid": ["a d"], "test": ["c"]})
    # b three times, the end twice, a and c once; the unknown word never.
    assert words == ["b", "<eos>", "a", "c", "<unk>"]
    assert ids["train"].tolist() == [0, 2, 0, 1, 0, 3, 1]
    assert ids["valid"].tolist() == [2, 4, 1]


def test_windows_go_on_where_the_last_one_ended() -> None:
    found = list(windows(torch.arange(2 * 80 + 1), columns=2))
    assert [len(inputs) for inputs, _ in found] == [35, 35, 9]
    inputs = torch.cat([inputs for inputs, _ in found])
    targets = torch.cat([targets for _, targets in found])
    assert inputs[:, 0].tolist() == list(range(79))
    assert inputs[:, 1].tolist() == list(range(80, 159))
    assert torch.equal(targets, inputs + 1)


def test_perplexity_is_that_of_the_probabilities_of_all_words() -> None:
    torch.manual_seed(0)
    model = LanguageModel(nn.Embedding(40, 6), 6, words=40, hidden=8, dropout=0.5)
    ids = torch.randint(40, (10 * 50,))
    text = ids.view(10, 50)
    with torch.no_grad():
        hidden, _ = model.eval().lstm(model.embedding(text[:, :-1].T))
        log_probabilities = model.output.log_prob(hidden.flatten(0, 1))
    torch.testing.assert_close(log_probabilities.exp().sum(1), torch.ones(490))
    chosen = log_probabilities[torch.arange(490), text[:, 1:].T.flatten()]
    assert perplexity(model, ids) == pytest.approx(math.exp(-float(chosen.mean())), rel=1e-4)


def sentences(amount: int, seed: int) -> list[str]:
    """A word says what comes next but for one of two."""
    generator = torch.Generator().manual_seed(seed)
    lines = []
    for _ in range(amount):
        word = int(torch.randint(30, (), generator=generator))
        line = []
        for step in torch.randint(1, 3, (8,), generator=generator).tolist():
            word = (word + step) % 30
            line.append(f"w{word}")
        lines.append(" ".join(line))
    return lines


@pytest.mark.parametrize(
    "embedding", [None, Differentiable("softmax", 8, 8), Differentiable("centroid", 8, 8)]
)
def test_a_model_learns_what_follows_what(embedding: Compressor | None) -> None:
    texts = {"train": sentences(400, 0), "valid": sentences(40, 1), "test": sentences(40, 2)}
    settings = {"dim": 16, "hidden": 32, "dropout": 0.1, "columns": 4, "learning_rate": 0.02}
    outcome = train(embedding, texts=texts, epochs=6, **settings)
    counts = Counter(word for line in texts["train"] for word in (*line.split(), "<eos>"))
    total = sum(counts.values())
    entropy = -sum(seen / total * math.log(seen / total) for seen in counts.values())
    assert outcome.test < 0.35 * math.exp(entropy)
    assert outcome.rows == 32
    if embedding is None:
        assert outcome.exported_equals_trained is None
        assert outcome.compression_ratio == 1
    else:
        assert outcome.exported_equals_trained
        expected = compression_ratio(32, 16, 8, 8).packed
        assert outcome.compression_ratio == pytest.approx(expected)
    assert outcome.as_dict()["metric"] == "perplexity"


def test_the_same_seed_gives_the_same_model_and_the_global_generator_is_left_alone() -> None:
    texts = {"train": sentences(40, 0), "valid": sentences(10, 1), "test": sentences(10, 2)}
    embedding = Differentiable("softmax", 2, 4)
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(9)
        outcome = train(embedding, texts=texts, dim=4, hidden=4, columns=4, epochs=1, seed=seed)
        found.append((outcome.test, float(torch.rand(()))))
    assert found[0] == found[1]
    assert found[0][0] != found[2][0]
    assert found[0][1] == found[2][1]


def test_a_method_that_can_not_learn_with_a_task_is_refused() -> None:
    texts = {"train": ["a b"], "valid": ["a"], "test": ["b"]}
    with pytest.raises(ConfigError, match="differentiable"):
        train(Product(2, 4), texts=texts, dim=4)


def test_missing_splits_are_named() -> None:
    with pytest.raises(DataError, match="valid"):
        train(texts={"train": ["a"], "test": ["a"]})


@pytest.mark.data
def test_the_penn_treebank_has_ten_thousand_words(public: Callable[[str], Path]) -> None:
    public("text/ptb/ptb.train.txt")
    ids, words = as_ids(penn_treebank())
    assert len(words) == 10_000
    # 887,521, 70,390 and 78,669 words and an end for each line.
    assert {name: len(split) for name, split in ids.items()} == {
        "train": 929_589,
        "valid": 73_760,
        "test": 82_430,
    }
