"""Codewords learn from the original's outputs; all else stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from smalti.embeddings import CompressedEmbedding, build_compressor
from smalti.hub.choosing.calibrating import calibrate
from smalti.hub.choosing.judging import Judge
from smalti.hub.choosing.targets import target_of
from smalti.hub.opening import Opened, open_model

pytest.importorskip("transformers")
PRODUCT = {"compressor": "product", "num_codebooks": 6, "codebook_size": 8}
TABLES = {
    "product": PRODUCT,
    "tiers": {"compressor": "partial", "keep": 30, "kept": "int4", "rest": PRODUCT},
    "low rank": {"compressor": "low_rank", "rank": 4},
}


@pytest.fixture
def opened(small_model: Callable[[str], Path]) -> Opened:
    return open_model(small_model("encoder"))


def fitted(opened: Opened, name: str) -> CompressedEmbedding:
    weight = opened.model.get_input_embeddings().weight
    return build_compressor(TABLES[name]).fit(weight, counts=torch.arange(1.0, 401.0))


@pytest.mark.parametrize("name", TABLES)
def test_the_outputs_for_the_teaching_texts_come_closer(
    name: str, opened: Opened, sentences: list[str]
) -> None:
    table, texts = fitted(opened, name), sentences[:200]
    taught = calibrate(opened, table, target_of(opened, texts), epochs=3, progress=False)
    judge = Judge(opened, texts)
    assert judge(taught).cosine > judge(table).cosine + 1e-4


@pytest.mark.parametrize("name", TABLES)
def test_only_a_copy_of_the_table_changes_and_no_code(
    name: str, opened: Opened, sentences: list[str]
) -> None:
    table = fitted(opened, name)
    model_before = {key: value.clone() for key, value in opened.model.state_dict().items()}
    table_before = {key: value.clone() for key, value in table.state_dict().items()}
    learns = [parameter.requires_grad for parameter in opened.model.parameters()]
    taught = calibrate(opened, table, target_of(opened, sentences[:64]), progress=False)
    for key, value in opened.model.state_dict().items():
        assert torch.equal(value, model_before[key]), key
    assert [parameter.requires_grad for parameter in opened.model.parameters()] == learns
    for key, value in table.state_dict().items():
        assert torch.equal(value, table_before[key]), key
    changed = {
        key
        for key, value in taught.state_dict().items()
        if not torch.equal(value, table_before[key])
    }
    assert changed
    assert changed <= {name for name, _ in taught.named_parameters()}
    assert taught.size() == table.size()
    assert taught.spec() == table.spec()


def test_the_seed_orders_the_texts(opened: Opened, sentences: list[str]) -> None:
    table, target = fitted(opened, "product"), target_of(opened, sentences[:192])
    one, same, other = (
        calibrate(opened, table, target, seed=seed, progress=False).dense() for seed in (0, 0, 1)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_rows_that_can_not_learn_stay_and_that_is_no_mistake(
    opened: Opened, sentences: list[str]
) -> None:
    weight = opened.model.get_input_embeddings().weight
    counts = torch.ones(400)
    some = build_compressor("partial", keep=399, kept="float16", rest="unknown")
    for compressor in (build_compressor("full", precision="float16"), some):
        table = compressor.fit(weight, counts=counts)
        taught = calibrate(opened, table, target_of(opened, sentences[:5]), progress=False)
        assert torch.equal(taught.dense(), table.dense())
