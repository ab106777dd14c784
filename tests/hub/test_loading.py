"""Damaged, foreign and edited directories are refused with a word about the fault."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import smalti
from smalti.codes.packing import pack
from smalti.errors import ArtifactError, ConfigError
from smalti.hub import load_model, read_info

Make = Callable[..., Any]


@pytest.fixture
def saved(make_model: Make, make_table: Make, tmp_path: Path) -> Path:
    model = smalti.replace_table(make_model("bert"), make_table())
    return smalti.save_model(model, None, tmp_path / "small")


def edit(directory: Path, change: Callable[[dict[str, Any]], object]) -> None:
    config = json.loads((directory / "config.json").read_text())
    change(config)
    (directory / "config.json").write_text(json.dumps(config))


def rewrite(directory: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    """Change tensors and leave out the checksums, as another program would."""
    file = directory / "model.safetensors"
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file, metadata={"format": "pt"})


def test_every_cut_of_the_weights_is_noticed(saved: Path) -> None:
    file = saved / "model.safetensors"
    whole = file.read_bytes()
    for length in (0, 1, 8, 100, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        for open_it in (load_model, read_info):
            with pytest.raises(ArtifactError, match=r"model\.safetensors is damaged"):
                open_it(saved)
    file.write_bytes(whole + b"\0")
    with pytest.raises(ArtifactError, match=r"model\.safetensors is damaged"):
        load_model(saved)


def test_changed_bytes_are_noticed_wherever_they_are(saved: Path) -> None:
    file = saved / "model.safetensors"
    whole = file.read_bytes()
    start = 8 + int.from_bytes(whole[:8], "little")
    for place in (0, 9, start // 2, start, (start + len(whole)) // 2, len(whole) - 1):
        broken = bytearray(whole)
        broken[place] ^= 1
        file.write_bytes(bytes(broken))
        with pytest.raises(ArtifactError, match=r"model\.safetensors"):
            load_model(saved)


def test_a_changed_tensor_is_named(saved: Path) -> None:
    file = saved / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    last = max(
        (entry["data_offsets"][1], name)
        for name, entry in json.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")]).items()
        if name != "__metadata__"
    )[1]
    with pytest.raises(ArtifactError, match=f"the tensor {last}"):
        load_model(saved)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c["quantization_config"].update(format_version=99), "version 99"),
        (lambda c: c["quantization_config"].update(tables={}), "no spec of the table"),
        (lambda c: c["quantization_config"]["tables"]["input"].update(table="x"), "no table 'x'"),
        (lambda c: c["quantization_config"]["tables"]["input"].update(parts=5), "must divide"),
        (lambda c: c["quantization_config"]["tables"]["input"].update(rows=100), "was changed"),
        (lambda c: c.pop("quantization_config"), "no smalti table"),
        (lambda c: c.update(quantization_config={"quant_method": "gptq"}), "no smalti table"),
        (lambda c: c.update(intermediate_size=36), "has shape"),
        (lambda c: c.update(vocab_size=102), "does not fit the model"),
        (lambda c: c.update(num_attention_heads=3), "can't be loaded"),
    ],
)
def test_an_edited_configuration_is_noticed(
    saved: Path, change: Callable[[dict[str, Any]], object], words: str
) -> None:
    edit(saved, change)
    with pytest.raises(ArtifactError, match=words):
        load_model(saved)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": ' * 100_000])
def test_a_damaged_configuration_is_named(saved: Path, text: str) -> None:
    (saved / "config.json").write_text(text)
    with pytest.raises(ArtifactError, match=r"config\.json is damaged"):
        load_model(saved)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_named(saved: Path, name: str) -> None:
    (saved / name).unlink()
    with pytest.raises(ArtifactError, match=f"{name} is missing"):
        load_model(saved)


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"there is no directory .*nowhere"):
        load_model(tmp_path / "nowhere")


@pytest.mark.parametrize("opener", [load_model, transformers.AutoModelForMaskedLM.from_pretrained])
def test_a_checkpoint_without_its_codes_is_refused_by_every_loader(
    saved: Path, opener: Callable[[Path], Any]
) -> None:
    key = "bert.embeddings.word_embeddings.table.codes"
    rewrite(saved, lambda tensors: tensors.pop(key))
    with pytest.raises(ArtifactError, match="lacks codes"):
        opener(saved)


@pytest.mark.parametrize("opener", [load_model, transformers.AutoModelForMaskedLM.from_pretrained])
def test_a_table_of_another_shape_is_refused_by_every_loader(
    saved: Path, opener: Callable[[Path], Any]
) -> None:
    key = "bert.embeddings.word_embeddings.table.codes"
    rewrite(saved, lambda tensors: tensors.update({key: tensors[key][:-1].clone()}))
    with pytest.raises(ArtifactError, match="does not fit"):
        opener(saved)


def test_codes_out_of_range_are_noticed_without_checksums(saved: Path) -> None:
    # 17 codewords take 5 bits, which also hold 17 to 31.
    codes = torch.full((101, 8), 20)
    key = "bert.embeddings.word_embeddings.table.codes"
    rewrite(saved, lambda tensors: tensors.update({key: pack(codes, (32,) * 8)}))
    with pytest.raises(ArtifactError, match="expected codes below 17, got 20"):
        load_model(saved)


def test_codewords_that_are_not_finite_are_noticed(saved: Path) -> None:
    key = "bert.embeddings.word_embeddings.table.codebooks"
    rewrite(saved, lambda tensors: tensors[key].fill_(float("nan")))
    with pytest.raises(ArtifactError, match="not finite"):
        load_model(saved)


def test_faults_of_shards_are_named(make_model: Make, make_table: Make, tmp_path: Path) -> None:
    model = smalti.replace_table(make_model("bert"), make_table())
    place = smalti.save_model(model, None, tmp_path / "small", max_shard_size="20kB")
    index = place / "model.safetensors.index.json"
    text = index.read_text()
    index.write_text(text.replace("bert.pooler", "bert.drooler").replace("LayerNorm", "Norm"))
    with pytest.raises(ArtifactError, match=r"index\.json does not fit"):
        load_model(place)
    index.write_text("{}")
    with pytest.raises(ArtifactError, match="no weight_map"):
        load_model(place)
    index.write_text(text)
    shard = sorted(place.glob("*.safetensors"))[1]
    content = shard.read_bytes()
    shard.unlink()
    with pytest.raises(ArtifactError, match=f"{shard.name} is missing"):
        load_model(place)
    shard.write_bytes(content)
    load_model(place)


def test_a_model_can_be_opened_as_another_kind(saved: Path) -> None:
    assert type(load_model(saved, kind="encoder")).__name__ == "BertModel"
    with pytest.raises(ConfigError, match="kind 'poet'"):
        load_model(saved, kind="poet")


def test_settings_reach_the_loader(saved: Path) -> None:
    model = load_model(saved, dtype=torch.bfloat16)
    assert model.dtype == torch.bfloat16


def test_a_dense_checkpoint_needs_a_compressor_to_be_compressed(
    make_model: Make, tmp_path: Path
) -> None:
    make_model("bert").save_pretrained(tmp_path)
    for config, words in [
        (smalti.SmaltiConfig(), "say how"),
        (smalti.SmaltiConfig(compressor="magic"), "no compressor 'magic'"),
    ]:
        with pytest.raises(ConfigError, match=words):
            transformers.AutoModel.from_pretrained(tmp_path, quantization_config=config)
