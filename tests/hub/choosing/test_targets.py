"""What an original model gives for texts, and how others are compared with it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from smalti.embeddings import build_compressor
from smalti.hub.choosing.judging import in_place
from smalti.hub.choosing.targets import EVERY, mean_cosine, target_of
from smalti.hub.opening import open_model

pytest.importorskip("transformers")
SPEAKING = ["causal", "gpt2", "masked", "t5", "marian"]


@pytest.mark.parametrize("kind", ["encoder", "classifier", *SPEAKING])
def test_the_original_itself_is_at_one(
    kind: str, small_model: Callable[[str], Path], sentences: list[str]
) -> None:
    opened = open_model(small_model(kind))
    target = target_of(opened, sentences[:10])
    # Log-probabilities are kept as float16.
    assert mean_cosine(target, opened.model) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("kind", SPEAKING)
@pytest.mark.parametrize("text", ["a", "bada"])
def test_texts_of_one_token_can_be_judged(
    kind: str, text: str, small_model: Callable[[str], Path]
) -> None:
    opened = open_model(small_model(kind))
    assert math.isfinite(mean_cosine(target_of(opened, [text]), opened.model))


def test_a_language_model_is_compared_by_the_overlap_of_its_probabilities(
    small_model: Callable[[str], Path], sentences: list[str]
) -> None:
    opened = open_model(small_model("causal"))
    table = build_compressor("integer", bits=2).fit(opened.model.get_input_embeddings().weight)
    texts = sentences[:6]
    target = target_of(opened, texts)

    def probabilities() -> np.ndarray:
        rows = []
        for text in texts:
            ids = opened.tokenizer(text, return_tensors="pt").input_ids
            with torch.no_grad():
                logits = opened.model(ids).logits[0, EVERY - 1 :: EVERY]
            rows.append(logits.double().softmax(dim=-1).numpy())
        return np.concatenate(rows)

    before = probabilities()
    with in_place(opened, table.dense()):
        after = probabilities()
        got = mean_cosine(target, opened.model)
    expected = np.sqrt(before * after).sum(axis=1).mean()
    assert expected < 0.999
    assert got == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("kind", ["t5", "marian"])
def test_of_encoder_and_decoder_both_count(
    kind: str, small_model: Callable[[str], Path], sentences: list[str]
) -> None:
    opened = open_model(small_model(kind))
    target = target_of(opened, sentences[:6])
    for side in ("encoder", "decoder"):
        changed = copy.deepcopy(opened.model)
        for name, parameter in changed.named_parameters():
            if f"{side}." in name and parameter.dim() == 2 and parameter.shape != (400, 24):
                torch.nn.init.normal_(parameter, std=0.5)
        assert mean_cosine(target, changed) != mean_cosine(target, opened.model)
