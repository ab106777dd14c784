"""A small BERT that fills in words, with a full and with a coded input table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from smalti.errors import DataError
from smalti.recipes.texts import MaskedModelConfig, train_masked_model
from smalti.recipes.texts.masked_model import MaskedModel, with_gaps
from smalti.training import TrainingSettings

Training = Callable[..., TrainingSettings]


def test_gaps_hide_the_words_they_ask_for_and_no_others() -> None:
    generator = torch.Generator().manual_seed(0)
    pieces = torch.randint(50, (400, 40), generator=generator)
    gaps = with_gaps(pieces, 50, generator)
    # 15 % of 40 words.
    assert gaps.places.shape == gaps.targets.shape == (400, 6)
    assert all(len(set(row)) == 6 for row in gaps.places.tolist())
    assert torch.equal(pieces.gather(1, gaps.places), gaps.targets)
    assert torch.equal(gaps.ids.scatter(1, gaps.places, gaps.targets), pieces)
    shown = gaps.ids.gather(1, gaps.places)
    # 80 % are the mask, and a tenth stays besides the swapped words that are themselves, 1 in 50.
    assert float((shown == 50).double().mean()) == pytest.approx(0.8, abs=0.03)
    assert float((shown == gaps.targets).double().mean()) == pytest.approx(0.102, abs=0.02)


def test_a_word_is_filled_in_from_both_sides() -> None:
    torch.manual_seed(0)
    config = MaskedModelConfig(dim=8, hidden=8, depth=1, heads=2)
    model = MaskedModel(nn.Embedding(21, 8), 20, config).eval()
    ids = torch.randint(20, (1, 9))
    before = model(ids, torch.tensor([[4]]))
    for place in (3, 5):
        other = ids.clone()
        other[0, place] = (ids[0, place] + 1) % 20
        assert not torch.allclose(model(other, torch.tensor([[4]])), before)


def repeated(amount: int, seed: int) -> list[str]:
    """Lines that say one of thirty words eight times."""
    words = torch.randint(30, (amount,), generator=torch.Generator().manual_seed(seed))
    return [" ".join([f"w{word}"] * 8) for word in words.tolist()]


def test_a_model_learns_to_fill_in(embedding: dict[str, Any] | None, training: Training) -> None:
    texts = {"train": repeated(400, 0), "valid": repeated(60, 1), "test": repeated(60, 2)}
    config = MaskedModelConfig(
        embedding=embedding,
        dim=16,
        hidden=32,
        depth=1,
        dropout=0.0,
        # A line and its end.
        window=9,
        training=training(epochs=8, batch_size=16, learning_rate=0.01),
    )
    outcome = train_masked_model(config, texts=texts).outcome
    # By chance a word is one of thirty; the rest of its line tells it.
    assert outcome.test["accuracy"] > 70
    assert outcome.test["perplexity"] < 3
    # 30 words, the end, the unknown word and the mask.
    assert outcome.rows == 33
    assert outcome.exported_equals_trained is (None if embedding is None else True)


def test_a_text_shorter_than_a_window_is_refused(training: Training) -> None:
    texts = {"train": ["a b c d"] * 20, "valid": ["a"], "test": ["b"]}
    with pytest.raises(DataError, match="window"):
        train_masked_model(MaskedModelConfig(window=16, training=training()), texts=texts)
