"""Texts as padded batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import RobertaConfig, RobertaModel

from smalti.errors import ConfigError, DataError
from smalti.hub.batching import batches, limit_of

TEXTS = ["w5", "w6 w7 w8", "w9 w10", "", "w11 w12 w13 w14"]


def test_rows_are_what_the_tokenizer_gives_with_the_longest_texts_first(
    word_tokenizer: Any,
) -> None:
    made = batches(word_tokenizer, TEXTS, batch_size=2)
    assert made.order.tolist() == [4, 1, 2, 0, 3]
    assert len(made) == 5
    for inputs, places in zip(made.inputs, ([4, 1], [2, 0], [3]), strict=True):
        expected = word_tokenizer(
            [TEXTS[place] for place in places], padding=True, return_tensors="pt"
        )
        for name, tensor in inputs.items():
            assert torch.equal(tensor, expected[name])


def test_rows_come_back_in_the_order_of_the_texts(word_tokenizer: Any) -> None:
    made = batches(word_tokenizer, TEXTS, batch_size=2)
    lengths = made.restored([inputs["attention_mask"].sum(dim=1) for inputs in made.inputs])
    assert lengths.tolist() == [3, 5, 4, 2, 6]  # with [CLS] and [SEP]


def test_the_two_texts_of_a_pair_are_told_apart(word_tokenizer: Any) -> None:
    (inputs,) = batches(word_tokenizer, ["w5"], ["w6 w7"]).inputs
    assert inputs["input_ids"].tolist() == [[2, 5, 3, 6, 7, 3]]
    assert inputs["token_type_ids"].tolist() == [[0, 0, 0, 1, 1, 1]]


def test_long_texts_are_cut_and_keep_their_last_special_token(word_tokenizer: Any) -> None:
    (inputs,) = batches(word_tokenizer, ["w5 w6 w7 w8"], limit=4).inputs
    assert inputs["input_ids"].tolist() == [[2, 5, 6, 3]]


def test_a_text_without_any_token_becomes_one_token_of_padding(word_tokenizer: Any) -> None:
    class Bare:
        """The tokenizer as causal models have it: nothing around a text, nothing to pad with."""

        pad_token_id = None

        def __call__(self, *texts: Any, **settings: Any) -> Any:
            return word_tokenizer(*texts, add_special_tokens=False, **settings)

    (inputs,) = batches(Bare(), ["", "w5 w6"]).inputs
    assert inputs["attention_mask"].tolist() == [[1, 1], [1, 0]]


@pytest.mark.parametrize("settings", [{"batch_size": 0}, {"first": []}])
def test_nothing_to_do_is_refused(word_tokenizer: Any, settings: dict[str, Any]) -> None:
    with pytest.raises((ConfigError, DataError)):
        batches(word_tokenizer, **{"first": ["w5"], **settings})


def test_the_limit_is_the_lower_of_the_models_and_the_tokenizers(
    make_model: Callable[[str], Any], word_tokenizer: Any
) -> None:
    model = make_model("bert")  # 40 positions
    assert limit_of(model, word_tokenizer) == 40
    assert limit_of(model, None) == 40

    class Short:
        model_max_length = 12

    assert limit_of(model, Short()) == 12
    assert limit_of(make_model("t5"), word_tokenizer) is None


def test_positions_that_begin_behind_the_padding_shorten_the_limit() -> None:
    sizes = {"vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 1, "intermediate_size": 8}
    config = RobertaConfig(
        **sizes, num_attention_heads=2, max_position_embeddings=20, pad_token_id=1
    )
    model = RobertaModel(config).eval()
    limit = limit_of(model, None)
    assert limit == 18
    model(torch.full((1, limit), 5))
    with pytest.raises((IndexError, RuntimeError)):
        model(torch.full((1, limit + 1), 5))
