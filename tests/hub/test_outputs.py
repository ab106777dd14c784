"""Hidden states and scores of language models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import Gemma2Config, Gemma2ForCausalLM

import smalti
from smalti.errors import ConfigError
from smalti.hub import outputs
from smalti.hub.outputs import TokenModel, last_hidden


def test_hidden_states_are_those_below_the_head(
    make_model: Callable[[str], Any], make_inputs: Callable[[Any], dict[str, torch.Tensor]]
) -> None:
    for name in ("bert", "llama", "gpt2", "bert-classifier"):
        model = make_model(name)
        inputs = make_inputs(model)
        with torch.no_grad():
            whole = model(**inputs, output_hidden_states=True).hidden_states[-1]
            torch.testing.assert_close(last_hidden(model, inputs), whole)


def test_what_a_model_does_not_take_is_not_given_to_it(
    make_model: Callable[[str], Any], make_inputs: Callable[[Any], dict[str, torch.Tensor]]
) -> None:
    model = make_model("t5")
    inputs = {**make_inputs(model), "token_type_ids": torch.zeros(2, 7, dtype=torch.int64)}
    with torch.no_grad():
        assert last_hidden(model, inputs).shape == (2, 7, 32)


@pytest.mark.parametrize(
    ("name", "comes_apart"),
    [("llama", True), ("llama-untied", True), ("gpt2", True), ("gemma3", True), ("bert", False)],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_scores_of_some_positions_are_the_models_own(
    make_model: Callable[[str], Any],
    make_table: Callable[..., Any],
    make_inputs: Callable[[Any], dict[str, torch.Tensor]],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    comes_apart: bool,
    compressed: bool,
) -> None:
    model = make_model(name)
    if compressed:
        smalti.replace_table(model, make_table())
    # Three positions at a time.
    monkeypatch.setattr(outputs, "PIECE", 3 * 101)
    inputs = make_inputs(model)
    where = torch.rand(2, 7, generator=torch.Generator().manual_seed(1)) < 0.7
    scorer = TokenModel(model)
    assert scorer.comes_apart == comes_apart
    pieces = list(scorer(inputs).scores(where))
    assert all(len(piece) <= 3 for piece in pieces)
    with torch.no_grad():
        expected = model(**inputs).logits[where]
    torch.testing.assert_close(torch.cat(pieces), expected, atol=1e-5, rtol=1e-5)


def test_scores_that_are_capped_behind_the_head_are_capped_here_too() -> None:
    torch.manual_seed(0)
    config = Gemma2Config(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        intermediate_size=16,
        final_logit_softcapping=0.5,
    )
    model = Gemma2ForCausalLM(config).eval()
    ids = torch.arange(5, 15)[None]
    where = torch.ones(1, 10, dtype=torch.bool)
    (scores,) = TokenModel(model)({"input_ids": ids}).scores(where)
    with torch.no_grad():
        torch.testing.assert_close(scores, model(ids).logits[0])
    assert scores.abs().max() <= 0.5


def test_a_model_without_an_output_layer_is_refused(make_model: Callable[[str], Any]) -> None:
    with pytest.raises(ConfigError, match="BertModel"):
        TokenModel(make_model("bert-encoder"))
