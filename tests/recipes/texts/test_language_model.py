"""A small language model with a full and with a coded input table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from smalti.embeddings.differentiable import compression_ratio
from smalti.errors import ConfigError, DataError
from smalti.recipes.texts import LanguageModelConfig, train_language_model
from smalti.recipes.texts.language_model import LanguageModel, perplexity, windows
from smalti.recipes.texts.word_texts import as_ids, read_word_texts
from smalti.training import TrainingSettings

Sentences = Callable[[int, int], list[str]]
Training = Callable[..., TrainingSettings]


def test_words_are_numbered_by_frequency_and_lines_end() -> None:
    ids, words = as_ids({"train": ["b a b", "b c"], "valid": ["a d"], "test": ["c"]})
    # b three times, the end twice, a and c once; the unknown word never.
    assert words == ["b", "<eos>", "a", "c", "<unk>"]
    assert ids["train"].tolist() == [0, 2, 0, 1, 0, 3, 1]
    assert ids["valid"].tolist() == [2, 4, 1]


def test_windows_go_on_where_the_last_one_ended() -> None:
    found = list(windows(torch.arange(2 * 80 + 1), rows=2, length=35))
    assert [window.ids.shape[1] for window in found] == [35, 35, 9]
    assert [window.first for window in found] == [True, False, False]
    ids = torch.cat([window.ids for window in found], dim=1)
    targets = torch.cat([window.targets for window in found], dim=1)
    assert ids[0].tolist() == list(range(79))
    assert ids[1].tolist() == list(range(80, 159))
    assert torch.equal(targets, ids + 1)


def test_perplexity_is_that_of_the_probabilities_of_all_words() -> None:
    torch.manual_seed(0)
    config = LanguageModelConfig(dim=6, hidden=8, dropout=0.5)
    model = LanguageModel(nn.Embedding(40, 6), 40, config).eval()
    ids = torch.randint(40, (10 * 50,))
    text = ids.view(10, 50)
    with torch.no_grad():
        hidden, _ = model.network.lstm(model.embedding(text[:, :-1]))
        log_probabilities = model.output.log_prob(hidden.flatten(0, 1))
    torch.testing.assert_close(log_probabilities.exp().sum(1), torch.ones(490))
    chosen = log_probabilities[torch.arange(490), text[:, 1:].flatten()]
    # Whatever the windows: the state goes on from one to the next.
    expected = pytest.approx(math.exp(-float(chosen.mean())), rel=1e-4)
    assert [perplexity(model, ids, length) for length in (49, 7)] == [expected, expected]


def test_no_word_of_a_transformer_sees_a_later_one() -> None:
    torch.manual_seed(0)
    config = LanguageModelConfig(network="transformer", dim=6, hidden=8, depth=2, heads=2)
    network = LanguageModel(nn.Embedding(40, 6), 40, config).eval().network
    x = torch.randn(1, 9, 6)
    later = x.clone()
    later[:, 5:] += 1
    torch.testing.assert_close(network(later)[0][:, :5], network(x)[0][:, :5])
    assert not torch.allclose(network(later)[0][:, 5:], network(x)[0][:, 5:])


@pytest.mark.parametrize("network", ["lstm", "transformer"])
def test_half_of_the_bits_give_nearly_the_same_loss(network: str) -> None:
    torch.manual_seed(0)
    config = LanguageModelConfig(network=network, dim=8, hidden=8, heads=2, dropout=0.0)
    model = LanguageModel(nn.Embedding(60, 8), 60, config)
    ids, targets = torch.randint(60, (2, 3, 7)).unbind()
    whole, _ = model(ids, targets, None)
    with torch.autocast("cpu", torch.bfloat16):
        half, _ = model(ids, targets, None)
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, whole, rtol=0.01, atol=0)


@pytest.mark.parametrize("network", ["lstm", "transformer"])
def test_a_model_learns_what_follows_what(
    network: str, embedding: dict[str, Any] | None, sentences: Sentences, training: Training
) -> None:
    texts = {"train": sentences(400, 0), "valid": sentences(40, 1), "test": sentences(40, 2)}
    rate = 0.02 if network == "lstm" else 0.005
    config = LanguageModelConfig(
        network=network,
        embedding=embedding,
        dim=16,
        hidden=32,
        dropout=0.1,
        window=20,
        training=training(epochs=6, learning_rate=rate),
    )
    outcome = train_language_model(config, texts=texts).outcome
    counts = Counter(word for line in texts["train"] for word in (*line.split(), "<eos>"))
    total = sum(counts.values())
    entropy = -sum(seen / total * math.log(seen / total) for seen in counts.values())
    # Far below what the frequencies of words alone give.
    assert outcome.test["perplexity"] < 0.35 * math.exp(entropy)
    assert outcome.rows == 32
    if embedding is None:
        assert outcome.exported_equals_trained is None
        assert outcome.compression_ratio == 1
    else:
        assert outcome.exported_equals_trained
        expected = compression_ratio(32, 16, 8, 8).packed
        assert outcome.compression_ratio == pytest.approx(expected)
    assert outcome.as_dict()["metric"] == "perplexity"


def test_the_same_seed_gives_the_same_model_and_the_global_generator_is_left_alone(
    sentences: Sentences, training: Training
) -> None:
    texts = {"train": sentences(40, 0), "valid": sentences(10, 1), "test": sentences(10, 2)}
    spec = {"compressor": "differentiable", "num_codebooks": 2, "codebook_size": 4}
    config = LanguageModelConfig(embedding=spec, dim=4, hidden=4, training=training())
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(9)
        learned = train_language_model(config.with_seed(seed), texts=texts)
        found.append((learned.outcome.test["perplexity"], float(torch.rand(()))))
    assert found[0] == found[1]
    assert found[0][0] != found[2][0]
    assert found[0][1] == found[2][1]


def test_a_method_that_can_not_learn_with_a_task_is_refused(training: Training) -> None:
    texts = {"train": ["a b c d e f"] * 4, "valid": ["a"], "test": ["b"]}
    spec = {"compressor": "product", "num_codebooks": 2, "codebook_size": 4}
    config = LanguageModelConfig(embedding=spec, dim=4, training=training())
    with pytest.raises(ConfigError, match="differentiable"):
        train_language_model(config, texts=texts)


def test_texts_that_are_missing_or_too_short_are_named(training: Training) -> None:
    config = LanguageModelConfig(training=training())
    with pytest.raises(DataError, match="valid"):
        train_language_model(config, texts={"train": ["a"], "test": ["a"]})
    with pytest.raises(DataError, match="batch_size"):
        train_language_model(config, texts={"train": ["a b"], "valid": ["a"], "test": ["a"]})


@pytest.mark.data
def test_the_penn_treebank_has_ten_thousand_words(public: Callable[[str], Path]) -> None:
    public("text/ptb/ptb.train.txt")
    ids, words = as_ids(read_word_texts("ptb"))
    assert len(words) == 10_000
    # 887,521, 70,390 and 78,669 words and an end for each line.
    assert {name: len(split) for name, split in ids.items()} == {
        "train": 929_589,
        "valid": 73_760,
        "test": 82_430,
    }
    assert [len(lines) for lines in read_word_texts("ptb", limit=3).values()] == [3, 3, 3]
