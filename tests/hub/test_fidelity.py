"""How closely a model does what another does."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from smalti.errors import ConfigError, ShapeError
from smalti.hub.batching import batches
from smalti.hub.fidelity import (
    class_fidelity,
    neighbour_overlap,
    token_fidelity,
    vector_fidelity,
)

TEXTS = ["w5 w6 w7 w8 w9 w10", "w11 w12 w13", "w14 w15 w16 w17", "w18 w19"]


def changed_copy(model: Any, share: float = 0.5) -> Any:
    """The same model with another table."""
    other = copy.deepcopy(model)
    weight = other.get_input_embeddings().weight
    noise = torch.randn(weight.shape, generator=torch.Generator().manual_seed(4))
    weight.data += share * weight.std() * noise
    return other


def test_cosines_are_those_of_the_vectors() -> None:
    original = torch.tensor([[1.0, 0.0]] * 21)
    angles = torch.arange(21) * math.pi / 40
    found = vector_fidelity(original, torch.stack([angles.cos(), angles.sin()], dim=1))
    cosines = np.cos(np.arange(21) * math.pi / 40)
    assert found["mean_cosine"] == pytest.approx(cosines.mean())
    # One of twenty lies below it: the value of the second place from below.
    expected = np.quantile(cosines, 0.05, method="lower")
    assert found["cosine_percentile_5"] == pytest.approx(expected)


def test_the_lengths_of_vectors_do_not_matter() -> None:
    vectors = torch.randn(40, 8, generator=torch.Generator().manual_seed(0))
    found = vector_fidelity(vectors, 3 * vectors)
    assert found["mean_cosine"] == pytest.approx(1)
    assert found["same_neighbours"] == 1


@pytest.mark.parametrize("count", [50, 1500])  # one block, and two
def test_neighbours_are_those_of_an_exact_search(count: int) -> None:
    neighbors = pytest.importorskip("sklearn.neighbors")
    generator = torch.Generator().manual_seed(0)
    original = torch.randn(count, 16, generator=generator)
    changed = original + 0.5 * torch.randn(count, 16, generator=generator)
    nearest = []
    for vectors in (original, changed):
        search = neighbors.NearestNeighbors(n_neighbors=10, metric="cosine").fit(vectors.numpy())
        nearest.append(search.kneighbors(return_distance=False))  # without the text itself
    shared = [len(set(one) & set(other)) for one, other in zip(*nearest, strict=True)]
    assert neighbour_overlap(original, changed) == pytest.approx(np.mean(shared) / 10)


def test_few_texts_say_nothing_about_neighbours() -> None:
    vectors = torch.randn(20, 4)
    assert vector_fidelity(vectors, vectors)["same_neighbours"] is None
    with pytest.raises(ConfigError, match="more texts than neighbours"):
        neighbour_overlap(vectors[:10], vectors[:10])


def test_vectors_of_other_texts_are_refused() -> None:
    with pytest.raises(ShapeError):
        vector_fidelity(torch.ones(3, 4), torch.ones(4, 4))


def test_classifiers_agree_where_they_choose_the_same_class() -> None:
    one = torch.tensor([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    other = torch.tensor([[0.2, 0.8], [0.7, 0.3], [0.9, 0.1], [9.0, 0.4]])
    assert class_fidelity(one, other) == {"same_class": 0.75}


@pytest.mark.parametrize("name", ["llama", "bert"])
def test_a_model_agrees_with_itself(
    make_model: Callable[[str], Any], word_tokenizer: Any, name: str
) -> None:
    model = make_model(name)
    made = batches(word_tokenizer, TEXTS, batch_size=2)
    found = token_fidelity(model, model, made, mask_id=4 if name == "bert" else None)
    assert found["mean_cosine"] == pytest.approx(1)
    assert found["divergence"] == pytest.approx(0, abs=1e-7)
    assert found["same_token"] == 1


def test_expected_tokens_are_compared_at_every_position(
    make_model: Callable[[str], Any], word_tokenizer: Any
) -> None:
    original = make_model("llama")
    changed = changed_copy(original)
    found = token_fidelity(original, changed, batches(word_tokenizer, TEXTS, batch_size=3))
    divergences, same, cosines = [], [], []
    for text in TEXTS:
        inputs = word_tokenizer(text, return_tensors="pt", return_token_type_ids=False)
        with torch.no_grad():
            one, other = (
                model(**inputs, output_hidden_states=True) for model in (original, changed)
            )
        p, q = (out.logits[0].double().softmax(dim=1).numpy() for out in (one, other))
        divergences += (p * np.log(p / q)).sum(axis=1).tolist()
        same += (p.argmax(axis=1) == q.argmax(axis=1)).tolist()
        a, b = (out.hidden_states[-1][0].double().numpy() for out in (one, other))
        lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        cosines += ((a * b).sum(axis=1) / lengths).tolist()
    assert found["positions"] == len(same) == 23
    assert found["divergence"] == pytest.approx(np.mean(divergences), rel=1e-3)
    assert found["same_token"] == pytest.approx(np.mean(same))
    assert found["mean_cosine"] == pytest.approx(np.mean(cosines), abs=1e-6)
    expected = np.quantile(cosines, 0.05, method="lower")
    assert found["cosine_percentile_5"] == pytest.approx(expected, abs=1e-6)


def test_masked_models_guess_hidden_tokens_that_are_not_special(
    make_model: Callable[[str], Any], word_tokenizer: Any
) -> None:
    original = make_model("bert")
    changed = changed_copy(original)
    asked: list[torch.Tensor] = []
    original.get_input_embeddings().register_forward_pre_hook(
        lambda _, arguments: asked.append(arguments[0])
    )
    made = batches(word_tokenizer, TEXTS * 50)
    found = token_fidelity(
        original, changed, made, mask_id=4, special=word_tokenizer.all_special_ids
    )
    # After the two calls that try whether the model comes apart, one for each batch.
    asked = [ids for ids in asked if ids.shape != (1, 4)]
    hidden = 0
    for ids, inputs in zip(asked, made.inputs, strict=True):
        masked = ids == 4
        hidden += int(masked.sum())
        assert torch.equal(ids[~masked], inputs["input_ids"][~masked])
        assert not (masked & (inputs["input_ids"] < 5)).any()
        assert masked.any(dim=1).all()
    assert found["positions"] == hidden
    assert found["divergence"] > 0


def test_models_of_other_vocabularies_are_refused(
    make_model: Callable[[str], Any], word_tokenizer: Any
) -> None:
    model = make_model("llama")
    other = copy.deepcopy(model)
    other.resize_token_embeddings(120)
    with pytest.raises(ShapeError, match="101 and 120"):
        token_fidelity(model, other, batches(word_tokenizer, TEXTS))
