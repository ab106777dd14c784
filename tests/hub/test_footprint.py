"""Bytes of models, and their times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import smalti
from smalti.errors import ConfigError
from smalti.hub.footprint import disk_bytes, memory_bytes, table_bytes
from smalti.hub.speed import speed


def test_all_files_of_a_directory_count(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "one").write_bytes(b"123")
    (tmp_path / "inner" / "two").write_bytes(b"45678")
    assert disk_bytes(tmp_path) == 8
    assert disk_bytes(tmp_path / "one") == 3


def test_what_is_shared_counts_once(make_model: Callable[[str], Any]) -> None:
    tied, untied = memory_bytes(make_model("llama")), memory_bytes(make_model("llama-untied"))
    assert untied["parameters"] - tied["parameters"] == 101 * 32 * 4
    assert tied["total"] == tied["parameters"] + tied["buffers"]


def test_memory_follows_the_type_of_the_numbers(make_model: Callable[[str], Any]) -> None:
    model = make_model("bert-encoder")
    whole = memory_bytes(model)["parameters"]
    assert memory_bytes(model.to(torch.bfloat16))["parameters"] == whole / 2


def test_a_tables_bytes_are_those_that_are_saved(
    make_model: Callable[[str], Any], make_table: Callable[..., Any]
) -> None:
    model = make_model("llama")
    assert table_bytes(model) == {"total": 101 * 32 * 4}
    smalti.replace_table(model, make_table())
    # By hand: 101 rows of 8 codes of 5 bits, and 8 codebooks of 17 codewords of 4 numbers
    # as float16.
    found = table_bytes(model)
    assert found["codes"] == 505
    assert found["codebooks"] == 8 * 17 * 4 * 2
    assert found["total"] == found["codes"] + found["codebooks"]


@pytest.mark.parametrize("name", ["bert", "llama", "t5"])
def test_a_model_is_as_fast_as_itself(make_model: Callable[[str], Any], name: str) -> None:
    model = make_model(name)
    found = speed(model, model, batch=4, length=16)
    assert 0.4 < found["ratio"] < 2.5
    assert found["seconds"] > 0


def test_a_slower_model_has_a_ratio_above_one(make_model: Callable[[str], Any]) -> None:
    model, slow = make_model("bert"), make_model("bert")
    large = torch.randn(300, 300)
    slow.bert.register_forward_pre_hook(lambda *_: [large @ large for _ in range(30)] and None)
    assert speed(slow, model, batch=2, length=8, rounds=5)["ratio"] > 1.5
    assert speed(model, slow, batch=2, length=8, rounds=5)["ratio"] < 0.7


def test_a_batch_is_no_longer_than_the_models_take(make_model: Callable[[str], Any]) -> None:
    model = make_model("bert")  # 40 positions
    assert speed(model, model, batch=2, length=64, rounds=1)["length"] == 40


def test_no_rounds_are_refused(make_model: Callable[[str], Any]) -> None:
    with pytest.raises(ConfigError, match="rounds"):
        speed(make_model("bert"), make_model("bert"), rounds=0)
