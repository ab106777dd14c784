"""Which modules of a model share its table; which models have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from torch import nn

import smalti
from smalti.errors import ConfigError, ShapeError
from smalti.hub import find_group

Make = Callable[..., Any]
# By hand, from the printed models.
PLACES = {
    "bert": {"bert.embeddings.word_embeddings", "cls.predictions.decoder"},
    "bert-encoder": {"embeddings.word_embeddings"},
    "gpt2": {"transformer.wte", "lm_head"},
    "llama": {"model.embed_tokens", "lm_head"},
    "llama-untied": {"model.embed_tokens"},
    "gemma3": {"model.embed_tokens", "lm_head"},
    "t5": {"shared", "encoder.embed_tokens", "decoder.embed_tokens", "lm_head"},
    "marian": {
        "model.shared",
        "model.encoder.embed_tokens",
        "model.decoder.embed_tokens",
        "lm_head",
    },
    "mbart": {
        "model.shared",
        "model.encoder.embed_tokens",
        "model.decoder.embed_tokens",
        "lm_head",
    },
}


@pytest.mark.parametrize("name", PLACES)
def test_a_group_has_all_modules_that_share_the_table(name: str, make_model: Make) -> None:
    model = make_model(name)
    group = find_group(model)
    assert set(group.names) == PLACES[name]
    assert len(group.names) == len(PLACES[name])
    assert model.get_submodule(group.owner) is model.get_input_embeddings()
    assert (group.rows, group.dim) == (101, 32)


def test_a_model_of_images_has_no_table() -> None:
    config = transformers.ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        image_size=8,
        patch_size=4,
    )
    with pytest.raises(ConfigError, match="table of vectors"):
        find_group(transformers.ViTModel(config))


def test_a_module_that_is_no_model_has_no_table() -> None:
    with pytest.raises(ConfigError, match="table of vectors"):
        find_group(nn.Linear(3, 3))


def test_an_embedding_that_does_more_than_scale_is_refused(make_model: Make) -> None:
    class Noisy(nn.Embedding):
        def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002
            return super().forward(input).tanh()

    model = make_model("llama")
    model.model.embed_tokens = Noisy(101, 32)
    with pytest.raises(ConfigError, match=r"model\.embed_tokens, a Noisy"):
        find_group(model)


def test_a_table_that_is_also_a_bare_parameter_is_refused(make_model: Make) -> None:
    model = make_model("llama")
    model.model.extra = model.model.embed_tokens.weight
    with pytest.raises(ConfigError, match=r"parameter model\.extra"):
        find_group(model)


def test_a_table_of_another_shape_is_refused(make_model: Make, make_table: Make) -> None:
    model = make_model("bert")
    with pytest.raises(ShapeError, match=r"101 rows of width 32.*got 50 of 32"):
        smalti.replace_table(model, make_table(rows=50))
    assert isinstance(model.get_input_embeddings(), nn.Embedding)
    assert not hasattr(model.config, "quantization_config")


def test_a_second_table_is_refused(make_model: Make, make_table: Make) -> None:
    model = smalti.replace_table(make_model("bert"), make_table())
    with pytest.raises(ConfigError, match="already"):
        smalti.replace_table(model, make_table())


def test_a_model_quantized_by_another_method_is_refused(make_model: Make, make_table: Make) -> None:
    model = make_model("bert")
    model.config.quantization_config = {"quant_method": "gptq"}
    with pytest.raises(ConfigError, match="another method"):
        smalti.replace_table(model, make_table())


def test_words_about_the_origin_must_be_plain_data(make_model: Make, make_table: Make) -> None:
    model = make_model("bert")
    with pytest.raises(ConfigError, match="JSON"):
        smalti.replace_table(model, make_table(), score=torch.ones(1))
    assert isinstance(model.get_input_embeddings(), nn.Embedding)


def test_an_embedding_module_that_stands_in_two_places_is_replaced_in_both(
    make_model: Make, make_table: Make, make_inputs: Make
) -> None:
    model = make_model("t5")
    model.encoder.embed_tokens = model.shared
    table = make_table()
    smalti.replace_table(model, table)
    assert set(find_names(model)) == PLACES["t5"]
    keys = [key for key in model.state_dict() if key.endswith("codes")]
    assert keys == ["shared.table.codes"]
    model(**make_inputs(model))


def find_names(model: nn.Module) -> list[str]:
    kinds = ("TableEmbedding", "TableView", "TableHead")
    return [name for name, part in model.named_modules() if type(part).__name__ in kinds]


def test_frozen_tables_stay_frozen(make_model: Make, make_table: Make) -> None:
    model = make_model("bert")
    model.get_input_embeddings().weight.requires_grad_(False)
    smalti.replace_table(model, make_table())
    assert not any(p.requires_grad for p in model.get_input_embeddings().parameters())
    assert not model.dequantize().get_input_embeddings().weight.requires_grad
