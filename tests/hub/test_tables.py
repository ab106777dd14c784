"""Every method's table goes through a model's file and comes back bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import smalti
from smalti.embeddings import build_compressor, compressors
from smalti.hub import load_model

Make = Callable[..., Any]


@pytest.fixture(params=compressors.names())
def model(request: pytest.FixtureRequest) -> Any:
    """A masked language model whose table a method compressed.

    Its width suits the methods' examples, and a third of its rows were never seen.
    """
    torch.manual_seed(3)
    sizes = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BertConfig(vocab_size=101, intermediate_size=37, **sizes)
    model = transformers.BertForMaskedLM(config).eval()
    compressor = build_compressor(request.param, **compressors.get(request.param).example)
    counts = torch.arange(67, -34, -1).clamp(min=0)
    table = compressor.fit(model.get_input_embeddings().weight, counts=counts, special=[0])
    return smalti.replace_table(model, table)


@torch.no_grad()
def answer(model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    return model(**inputs).logits


def test_a_saved_table_comes_back_bit_for_bit(
    model: Any, make_inputs: Make, tmp_path: Path
) -> None:
    place = smalti.save_model(model, None, tmp_path / "small")
    inputs = make_inputs(model)
    plain = transformers.AutoModelForMaskedLM.from_pretrained(place)
    for again in (plain, load_model(place)):
        assert torch.equal(answer(again, inputs), answer(model, inputs))
        assert (
            again.get_input_embeddings().table.size() == model.get_input_embeddings().table.size()
        )


def test_a_saved_table_opens_in_bfloat16(model: Any, make_inputs: Make, tmp_path: Path) -> None:
    place = smalti.save_model(model, None, tmp_path / "small")
    half = transformers.AutoModelForMaskedLM.from_pretrained(place, dtype=torch.bfloat16)
    inputs = make_inputs(model)
    vectors = half.get_input_embeddings()(inputs["input_ids"])
    assert vectors.dtype == torch.bfloat16
    expected = model.get_input_embeddings()(inputs["input_ids"])
    torch.testing.assert_close(vectors.float(), expected.detach(), atol=2e-2, rtol=2e-2)
    assert answer(half, inputs).dtype == torch.bfloat16


def test_an_exported_table_is_what_it_decoded_to(model: Any, tmp_path: Path) -> None:
    dense = model.get_input_embeddings().table.dense()
    place = smalti.save_model(model, None, tmp_path / "small")
    exported = smalti.export_model(place, tmp_path / "dense")
    again = transformers.AutoModelForMaskedLM.from_pretrained(exported)
    assert torch.equal(again.get_input_embeddings().weight, dense)
    assert again.get_output_embeddings().weight is again.get_input_embeddings().weight
