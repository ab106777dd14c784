"""Commands on models: evaluate, export, inspect; run in this process, as ``smalti`` runs them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import smalti
from smalti.data import count_tokens
from smalti.embeddings import build_compressor

from .conftest import Done

transformers = pytest.importorskip("transformers")

TEXTS = [f"w{5 + number % 60} w{50 + number % 40} w7" for number in range(40)]
BERT = {"vocab_size": 101, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
LLAMA = {**BERT, "intermediate_size": 16, "num_key_value_heads": 2, "tie_word_embeddings": True}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, word_tokenizer: Any) -> Path:
    """A directory with models, dense and with a partly kept table, and with data."""
    folder = tmp_path_factory.mktemp("models")
    counts = count_tokens(TEXTS, word_tokenizer, 101).counts
    rest = {"compressor": "product", "num_codebooks": 8, "codebook_size": 8}
    partial = build_compressor("partial", keep=20, kept="float32", rest=rest)
    torch.manual_seed(0)
    models = {
        "encoder": transformers.BertModel(transformers.BertConfig(**BERT, intermediate_size=16)),
        "causal": transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)),
    }
    for name, model in models.items():
        model.save_pretrained(folder / name)
        word_tokenizer.save_pretrained(folder / name)
        table = partial.fit(
            model.get_input_embeddings().weight,
            counts=counts,
            special=word_tokenizer.all_special_ids,
        )
        smalti.replace_table(model, table)
        smalti.save_model(model, word_tokenizer, folder / f"small-{name}")
    (folder / "texts.txt").write_text("\n".join(TEXTS))
    pairs = [f"{TEXTS[n]}\t{TEXTS[-1 - n]}\t{n / 4}" for n in range(20)]
    (folder / "pairs.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *pairs]) + "\n")
    return folder


def test_an_encoder_is_measured_beside_its_original(
    place: Path, smalti_command: Callable[..., Done]
) -> None:
    arguments = [
        *("evaluate", place / "small-encoder", "--against", place / "encoder"),
        *("--text", place / "texts.txt", "--texts", "25", "--labelled", place / "pairs.tsv"),
        *("--speed", "--threads", "1", "--seed", "3"),
    ]
    done = smalti_command(*arguments, "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert found["model"]["table"]["total"] < found["against"]["table"]["total"] == 101 * 32 * 4
    assert found["fidelity"]["texts"] == 25
    assert 0 < found["fidelity"]["mean_cosine"] < 1
    (task,) = found["tasks"]
    assert (task["task"], task["examples"]) == ("similarity", 20)
    assert set(task["against"]) == {"spearman", "pearson"}
    assert found["speed"]["ratio"] > 0
    # 20 commonest rows, and the five special ones, of which [CLS] and [SEP] are among them.
    assert found["coverage"]["numbers"]["kept"] == 23
    assert found["frequency_bands"]["numbers"]["bands"][-1]["mean_cosine"] == pytest.approx(1)
    assert (found["threads"], found["seed"]) == (1, 3)

    table = smalti_command(*arguments).out
    for words in ("table bytes", "fidelity, mean cosine", "similarity, spearman", "forward pass"):
        assert words in table
    assert "The 23 kept rows of 101 cover" in table


def test_a_causal_model_is_measured_by_its_perplexity(
    place: Path, smalti_command: Callable[..., Done]
) -> None:
    arguments = [
        *("evaluate", place / "small-causal", "--against", place / "causal"),
        *("--perplexity-text", place / "texts.txt"),
        *("--tokens", "60", "--context", "16", "--stride", "8"),
    ]
    done = smalti_command(*arguments, "--json")
    assert done.status == 0, done.err
    (task,) = json.loads(done.out)["tasks"]
    assert (task["task"], task["examples"]) == ("perplexity", 60)
    assert task["figures"]["perplexity"] > 1
    assert "perplexity, perplexity" in smalti_command(*arguments).out


def test_coverage_needs_no_original(place: Path, smalti_command: Callable[..., Done]) -> None:
    done = smalti_command("evaluate", place / "small-encoder", "--text", place / "texts.txt")
    assert done.status == 0, done.err
    assert "kept rows" in done.out


def test_coverage_looks_behind_a_turn(
    place: Path, tmp_path: Path, word_tokenizer: Any, smalti_command: Callable[..., Done]
) -> None:
    model = transformers.AutoModel.from_pretrained(place / "encoder")
    rest = {"compressor": "partial", "keep": 20, "kept": "int8", "rest": {"compressor": "integer"}}
    table = build_compressor("turned", rest=rest).fit(
        model.get_input_embeddings().weight,
        counts=count_tokens(TEXTS, word_tokenizer, 101).counts,
        special=word_tokenizer.all_special_ids,
    )
    smalti.save_model(smalti.replace_table(model, table), word_tokenizer, tmp_path / "turned")
    done = smalti_command("evaluate", tmp_path / "turned", "--text", place / "texts.txt")
    assert done.status == 0, done.err
    assert "The 23 kept rows of 101 cover" in done.out


def test_a_dense_model_alone_has_sizes(place: Path, smalti_command: Callable[..., Done]) -> None:
    found = json.loads(smalti_command("evaluate", place / "encoder", "--json").out)
    assert found["model"]["table"] == {"total": 101 * 32 * 4}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("evaluate", "{}/nowhere"), "nowhere"),
        (("evaluate", "{}/encoder", "--text", "{}/texts.txt"), "--against"),
        (("evaluate", "{}/encoder", "--text", "{}/none.txt"), "none.txt"),
        (("evaluate", "{}/encoder", "--speed"), "--against"),
        (("evaluate", "{}/encoder", "--perplexity-text", "{}/texts.txt"), "causal"),
        (("evaluate", "{}/encoder", "--labelled", "{}/pairs.tsv", "--label", "x"), "score"),
        (("evaluate", "{}/encoder", "--against", "{}/causal"), "one kind"),
        (("export", "{}/encoder", "-o", "{}/out"), "no smalti table"),
        (("export", "{}/small-encoder", "-o", "{}/encoder"), "exists"),
        (("inspect", "{}/encoder"), "no smalti table"),
    ],
)
def test_what_can_not_be_done_is_one_line_and_status_2(
    place: Path, smalti_command: Callable[..., Done], arguments: tuple[str, ...], words: str
) -> None:
    done = smalti_command(*(argument.format(place) for argument in arguments))
    assert done.status == 2
    assert done.out == ""
    assert words in done.err.splitlines()[-1]
    assert done.err.splitlines()[-1].startswith("smalti: ")


def test_an_exported_model_gives_what_the_compressed_one_gives(
    place: Path, tmp_path: Path, smalti_command: Callable[..., Done]
) -> None:
    for name, opener in (("encoder", "AutoModel"), ("causal", "AutoModelForCausalLM")):
        output = tmp_path / name
        done = smalti_command("export", place / f"small-{name}", "-o", output, "--json")
        assert done.status == 0, done.err
        told = json.loads(done.out)
        assert told["directory"] == str(output)
        assert told["bytes"] == sum(f.stat().st_size for f in output.rglob("*") if f.is_file())
        dense, small = (
            getattr(transformers, opener).from_pretrained(directory).eval()
            for directory in (output, place / f"small-{name}")
        )
        assert isinstance(dense.get_input_embeddings(), torch.nn.Embedding)
        ids = torch.tensor([[2, 5, 99, 60, 3]])
        with torch.no_grad():
            torch.testing.assert_close(dense(ids)[0], small(ids)[0])


def test_inspecting_a_model_tells_its_table_by_part(
    place: Path, smalti_command: Callable[..., Done]
) -> None:
    found = json.loads(smalti_command("inspect", place / "small-causal", "--json").out)
    assert found["table"]["table"] == "partial"
    assert found["places"] == ["model.embed_tokens", "lm_head"]
    assert found["checksums"] == "right"
    assert found["sizes"]["total"] == sum(
        size for part, size in found["sizes"].items() if part != "total"
    )
    table = smalti_command("inspect", place / "small-causal").out
    assert "table bytes, codes" in table
    assert "lm_head" in table


def test_a_damaged_model_is_one_line_that_names_the_tensor(
    place: Path, tmp_path: Path, smalti_command: Callable[..., Done]
) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for file in (place / "small-encoder").iterdir():
        (damaged / file.name).write_bytes(file.read_bytes())
    content = bytearray((damaged / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (damaged / "model.safetensors").write_bytes(content)
    for arguments in (
        ("inspect", damaged),
        ("evaluate", damaged),
        ("export", damaged, "-o", tmp_path / "out"),
    ):
        done = smalti_command(*arguments)
        assert done.status == 2
        assert done.err.count("\n") == 1
        assert "is damaged: the tensor" in done.err
