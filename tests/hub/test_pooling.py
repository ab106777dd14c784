"""Sentence vectors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from smalti.data import read_labelled
from smalti.errors import ConfigError, DataError
from smalti.hub.batching import batches
from smalti.hub.pooling import SentenceSettings, encode, encode_batches, sentence_settings
from smalti.hub.similarity import distinct, similarity

TEXTS = ["A man plays.", "Two dogs run over the green field, and a cat watches.", "", "Hello"]


def test_vectors_are_those_of_sentence_transformers(opened_minilm: Any) -> None:
    library = pytest.importorskip("sentence_transformers")
    peer = library.SentenceTransformer(str(opened_minilm.path), device="cpu")
    texts = [*TEXTS, "word " * 400]
    settings = sentence_settings(opened_minilm.path)
    vectors = encode(
        opened_minilm.model,
        opened_minilm.tokenizer,
        texts,
        batch_size=2,
        pooling=settings.pooling,
        limit=settings.limit,
    )
    expected = torch.from_numpy(peer.encode(texts, batch_size=1))
    torch.testing.assert_close(vectors, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("pooling", "pool"),
    [
        ("mean", lambda hidden: hidden.mean(axis=0)),
        ("max", lambda hidden: hidden.max(axis=0)),
        ("cls", lambda hidden: hidden[0]),
    ],
)
def test_padding_is_no_part_of_a_vector(
    make_model: Callable[[str], Any],
    word_tokenizer: Any,
    pooling: str,
    pool: Callable[[np.ndarray], np.ndarray],
) -> None:
    model = make_model("bert-encoder")
    texts = ["w5 w6 w7 w8 w9", "w10", "w11 w12", "w13 w14 w15"]
    vectors = encode(model, word_tokenizer, texts, batch_size=3, pooling=pooling)
    for text, vector in zip(texts, vectors, strict=True):
        with torch.no_grad():
            alone = model(**word_tokenizer(text, return_tensors="pt"))
        expected = pool(alone.last_hidden_state[0].double().numpy())
        np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-5)


@pytest.mark.parametrize("name", ["bert", "bert-classifier", "t5", "llama"])
def test_any_transformer_gives_vectors_of_length_one(
    make_model: Callable[[str], Any], word_tokenizer: Any, name: str
) -> None:
    vectors = encode(make_model(name), word_tokenizer, ["w5 w6 w7", "w8"])
    assert vectors.shape == (2, 32)
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(2))


def test_long_texts_are_cut_to_the_models_limit(
    make_model: Callable[[str], Any], word_tokenizer: Any
) -> None:
    model = make_model("bert-encoder")  # 40 positions, 38 without [CLS] and [SEP]
    cut, whole = encode(model, word_tokenizer, ["w5 " * 100, "w5 " * 38])
    torch.testing.assert_close(cut, whole)


def test_an_unknown_way_of_pooling_is_refused(
    make_model: Callable[[str], Any], word_tokenizer: Any
) -> None:
    made = batches(word_tokenizer, ["w5"])
    with pytest.raises(ConfigError, match="mean, cls, max"):
        encode_batches(make_model("bert-encoder"), made, "sum")


OLD = {"word_embedding_dimension": 384, "pooling_mode_mean_tokens": False}


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({**OLD, "pooling_mode_cls_token": True}, "cls"),
        ({**OLD, "pooling_mode_max_tokens": True}, "max"),
        ({**OLD, "pooling_mode_mean_tokens": True}, "mean"),
        ({"embedding_dimension": 384, "pooling_mode": "cls"}, "cls"),
        ({"embedding_dimension": 384, "pooling_mode": ["max"]}, "max"),
    ],
)
def test_the_models_own_pooling_is_read(
    tmp_path: Path, config: dict[str, Any], pooling: str
) -> None:
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(config))
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 7}')
    assert sentence_settings(tmp_path) == SentenceSettings(pooling, limit=7)


def test_without_files_of_sentence_transformers_it_is_the_mean(tmp_path: Path) -> None:
    assert sentence_settings(tmp_path) == SentenceSettings("mean")
    assert sentence_settings(None) == SentenceSettings("mean")


def test_pooling_that_smalti_does_not_have_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "1_Pooling").mkdir()
    file = tmp_path / "1_Pooling" / "config.json"
    file.write_text('{"pooling_mode": "lasttoken"}')
    with pytest.raises(ConfigError, match="lasttoken"):
        sentence_settings(tmp_path)
    file.write_text("{")
    with pytest.raises(DataError, match="1_Pooling"):
        sentence_settings(tmp_path)


def test_modules_behind_the_pooling_are_named(tmp_path: Path) -> None:
    types = ("Transformer", "Pooling", "Dense", "Normalize")
    modules = [{"type": f"sentence_transformers.models.{name}"} for name in types]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    assert sentence_settings(tmp_path).left_out == ("Dense",)


@pytest.mark.data
@pytest.mark.slow
def test_minilm_reaches_its_known_score_on_sts_b(
    opened_minilm: Any, public: Callable[[str], Path]
) -> None:
    pairs = read_labelled(public("glue/STS-B/dev.tsv"))
    made = batches(opened_minilm.tokenizer, distinct(pairs)[0], limit=256)
    figures = similarity(opened_minilm.model, made, pairs)
    assert figures["spearman"] == pytest.approx(86.72, abs=0.005)
