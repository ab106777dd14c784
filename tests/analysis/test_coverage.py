"""Coverage is the share of tokens, and of whole texts, that kept rows hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from smalti.analysis import Finding, coverage
from smalti.errors import DataError, ShapeError


@pytest.fixture
def words() -> Any:
    """A tokenizer of whole words, with one token around each text."""
    tokenizers = pytest.importorskip("tokenizers")
    from tokenizers import models, pre_tokenizers, processors

    names = ["[S]", "a", "b", "c", "d"]
    vocabulary = {name: place for place, name in enumerate(names)}
    tokenizer = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token="d"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing("[S] $A", None, [("[S]", 0)])
    return tokenizer


def test_tokens_and_texts_are_counted_by_hand(words: Any) -> None:
    texts = ["a b", "a c a a", "d", "b"]
    found = coverage(texts, words, torch.tensor([0, 1, 2, 2]), rows=5)
    # Kept are [S], a and b: 6 of 8 words, and the first and the last text.
    assert found.numbers == {
        "rows": 5,
        "kept": 3,
        "tokens": 8,
        "sentences": 4,
        "token_coverage": 6 / 8,
        "sentence_coverage": 2 / 4,
    }
    assert "75.00% of the tokens" in found.caption
    assert "50.00% of the texts" in found.caption


def test_all_rows_cover_all_and_none_cover_none(words: Any) -> None:
    every = coverage(["a b", "d"] * 2000, words, torch.arange(5), rows=5).numbers
    assert (every["token_coverage"], every["sentence_coverage"]) == (1.0, 1.0)
    none = coverage(["a b", "d"], words, torch.tensor([], dtype=torch.int64), rows=5).numbers
    assert (none["token_coverage"], none["sentence_coverage"]) == (0.0, 0.0)


def test_a_finding_is_plain_data(words: Any) -> None:
    found = coverage(["a"], words, torch.tensor([1]), rows=5)
    assert isinstance(found, Finding)
    assert json.loads(json.dumps(found.as_dict())) == found.as_dict()


def test_what_does_not_fit_is_refused(words: Any) -> None:
    with pytest.raises(DataError, match=r"kept rows in 0\.\.4, got 1\.\.5"):
        coverage(["a"], words, torch.tensor([1, 5]), rows=5)
    with pytest.raises(ShapeError, match="as whole numbers"):
        coverage(["a"], words, torch.tensor([True, False]), rows=5)
    with pytest.raises(DataError, match="another model's"):
        coverage(["d"], words, torch.tensor([1]), rows=3)
    with pytest.raises(DataError, match="at least one text"):
        coverage([], words, torch.tensor([1]), rows=5)
