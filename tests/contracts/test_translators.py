"""The laws that every registered translator keeps; particulars are elsewhere."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from smalti.embeddings import build_compressor
from smalti.errors import ConfigError
from smalti.translation import Decoding, Translator, build_translator, translators
from smalti.translation.ids import EOS, MARKS, PAD

NAMES = translators.names()
VOCABULARY = 50


def small(name: str, **changed: Any) -> Translator:
    torch.manual_seed(1)
    settings = {**translators.get(name).example, **changed}
    model = build_translator(name, vocabulary=VOCABULARY, **settings)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape))
    return model.eval()


def sentences(count: int, seed: int = 2, longest: int = 11) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(4, VOCABULARY, (count, longest), generator=generator)
    lengths = torch.randint(1, longest + 1, (count, 1), generator=generator)
    lengths[0] = longest
    places = torch.arange(longest)
    ids = torch.where(places < lengths - 1, ids, PAD)
    return torch.where(places == lengths - 1, EOS, ids)


def test_the_registry_holds_the_whole_family() -> None:
    assert {"autoregressive", "latent", "parallel"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_settings_survive_json_and_make_an_equal_twin(name: str) -> None:
    model = small(name)
    spec = json.loads(json.dumps(model.spec()))
    twin = build_translator(spec).eval()
    twin.load_state_dict(model.state_dict())
    source = sentences(5)
    assert twin.translate(source) == model.translate(source)
    assert twin.spec() == model.spec()


@pytest.mark.parametrize("name", NAMES)
def test_translations_are_lists_of_words_in_the_order_of_the_batch(name: str) -> None:
    model, source = small(name), sentences(6)
    options = Decoding(max_ratio=1.0, max_extra=4)
    found = model.translate(source, options)
    lengths = (source != PAD).sum(dim=1).tolist()
    assert all(len(one) <= length + 4 for one, length in zip(found, lengths, strict=True))
    assert not any(MARKS & set(one) for one in found)
    assert model.translate(source.flip(0), options) == found[::-1]
    assert model.translate(source, options) == found


@pytest.mark.parametrize("name", NAMES)
def test_what_was_packed_for_inference_follows_the_weights(name: str) -> None:
    model, other, source = small(name), small(name), sentences(20)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(torch.randn(parameter.shape))
    first = model.translate(source)
    expected = other.translate(source)
    assert first != expected
    model.load_state_dict(other.state_dict())
    assert model.translate(source) == expected
    assert copy.deepcopy(model).translate(source) == expected


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_learns(name: str) -> None:
    model = small(name).train()
    for _ in range(2):
        # The first step finds codewords on the data where there are any.
        model.zero_grad()
        model.loss(sentences(8), sentences(8, seed=3))[0].backward()
    for key, parameter in model.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, key
            assert parameter.grad.abs().sum() > 0, key


@pytest.mark.parametrize("name", NAMES)
def test_padding_changes_no_loss(name: str) -> None:
    model = small(name)
    source, target = sentences(4), sentences(4, seed=3)
    wider = [nn.functional.pad(ids, (0, 5)) for ids in (source, target)]
    torch.testing.assert_close(model.loss(*wider)[0], model.loss(source, target)[0])


@pytest.mark.parametrize("name", NAMES)
def test_training_in_half_of_the_bits_stays_close(name: str) -> None:
    model = small(name).train()
    source, target = sentences(8), sentences(8, seed=3)
    model.loss(source, target)
    state = copy.deepcopy(model.state_dict())
    exact, _ = model.loss(source, target)
    model.load_state_dict(state)
    with torch.autocast("cpu", torch.bfloat16):
        rounded, _ = model.loss(source, target)
    rounded.backward()
    assert abs((rounded - exact).item()) < 0.05 * exact.item()


@pytest.mark.parametrize("compressor", ["differentiable", "low_rank"])
@pytest.mark.parametrize("name", NAMES)
def test_any_table_takes_the_place_of_the_word_vectors(name: str, compressor: str) -> None:
    settings = {"differentiable": {"num_codebooks": 4, "codebook_size": 8}, "low_rank": {"rank": 4}}
    made = build_compressor({"compressor": compressor, **settings[compressor]})
    table = made.start(VOCABULARY, translators.get(name).example["dim"])
    model = small(name, tables={"shared": table}).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    source = sentences(8)
    losses = []
    for _ in range(6):
        loss, _ = model.loss(source, source)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert "tables" not in model.spec()
    assert len(model.eval().translate(source)) == 8


@pytest.mark.parametrize("name", NAMES)
def test_a_very_long_sentence_is_translated(name: str) -> None:
    model = small(name)
    source = torch.randint(4, VOCABULARY, (1, 700))
    source[0, -1] = EOS
    options = Decoding(max_ratio=0.0, max_extra=20)
    assert len(model.translate(source, options)[0]) <= 20
    # And training goes on with what was made for it.
    model.train().loss(source, source)[0].backward()


@pytest.mark.parametrize("name", NAMES)
def test_unknown_settings_are_named(name: str) -> None:
    with pytest.raises(ConfigError, match="no setting widths"):
        build_translator(name, vocabulary=VOCABULARY, widths=3)
