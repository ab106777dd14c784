"""Compress, save, open again: all kinds of models, whole."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import smalti
from smalti.data import Labelled, TokenCounts
from smalti.embeddings import PartialTable
from smalti.errors import ConfigError, DataError, SmaltiError
from smalti.hub.choosing.judging import Judge
from smalti.hub.choosing.survey import Survey, survey
from smalti.hub.choosing.wish import as_wish
from smalti.hub.compressing import compress, made_table, plan, table_of
from smalti.hub.opening import open_model

transformers = pytest.importorskip("transformers")
DENSE = 400 * 24 * 4
PRODUCT = {"num_codebooks": 6, "codebook_size": 16}
QUICK: dict[str, Any] = {"method": "product", "settings": PRODUCT, "progress": False}
INPUTS = {"input_ids": torch.tensor([[2, 50, 399, 7, 3]])}


def logits(model: Any) -> torch.Tensor:
    more = {"decoder_input_ids": INPUTS["input_ids"]} if model.config.is_encoder_decoder else {}
    with torch.no_grad():
        first: torch.Tensor = model(**INPUTS, **more)[0]
    return first


def header(file: Path) -> dict[str, Any]:
    """The entries of a safetensors file, read by hand."""
    raw = file.read_bytes()
    entries: dict[str, Any] = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    entries.pop("__metadata__")
    return entries


def bytes_of(entries: dict[str, Any]) -> int:
    return sum(entry["data_offsets"][1] - entry["data_offsets"][0] for entry in entries.values())


RELOAD = """
import sys, torch, smalti
from transformers import AutoModel
model = AutoModel.from_pretrained(sys.argv[1]).eval()
with torch.no_grad():
    torch.save(model(torch.tensor([[2, 50, 399, 7, 3]]))[0], sys.argv[2])
"""


@pytest.mark.slow
def test_a_saved_model_gives_the_same_bits_in_a_new_process(
    small_model: Callable[[str], Path], text_file: Path, tmp_path: Path
) -> None:
    small = compress(small_model("encoder"), text_file, size="20%", progress=False)
    small.save(tmp_path / "small")
    output = tmp_path / "hidden.pt"
    subprocess.run([sys.executable, "-c", RELOAD, tmp_path / "small", output], check=True)
    assert torch.equal(torch.load(output), logits(small.model))


@pytest.mark.parametrize("size", ["4%", "9%", "16.5%", "23%", "50%"])
def test_the_bytes_told_are_those_of_the_saved_tensors_and_within_the_size(
    size: str, small_model: Callable[[str], Path], text_file: Path, tmp_path: Path
) -> None:
    small = compress(small_model("encoder"), text_file, size=size, teach=False, progress=False)
    place = small.save(tmp_path / "small")
    before = header(small_model("encoder") / "model.safetensors")
    after = header(place / "model.safetensors")
    table = {name: entry for name, entry in after.items() if name not in before}
    assert set(before) - set(after) == {"embeddings.word_embeddings.weight"}
    assert small.figures["bytes"] == bytes_of(table)
    assert bytes_of(after) - bytes_of(table) == bytes_of(before) - DENSE
    assert small.figures["bytes"] <= float(size[:-1]) / 100 * DENSE
    assert small.figures["float32_bytes"] == DENSE
    assert small.figures["percent"] == pytest.approx(100 * bytes_of(table) / DENSE, abs=1e-3)


@pytest.mark.parametrize("seen_at_the_end", [300, 400])
def test_more_words_at_the_end_do_not_break_the_budget(
    seen_at_the_end: int, small_model: Callable[[str], Path], short_file: Path
) -> None:
    opened = open_model(small_model("encoder"))
    known = survey(opened.tokenizer, 400, [short_file], progress=False)
    # In the end more rows occur, or all, than choosing knows of.
    more = known.counts.counts + (torch.arange(400) < seen_at_the_end)
    every = TokenCounts(more, 1, (), known.counts.tokenizer)
    known = Survey(every, known.choosing, known.judging, [], ())
    size = 0.38
    trials, trial, table = made_table(opened, known, as_wish(size), None, 0, False)
    assert trial in trials
    assert trial.compressor.spec()["keep"] == 1.0
    final = table_of(opened, known, choosing=False)
    assert (final.bytes_of(trial.compressor) or DENSE) > size * DENSE
    assert table.size().total == trial.bytes <= size * DENSE


def test_the_drop_that_is_allowed_is_kept_to(
    small_model: Callable[[str], Path], text_file: Path
) -> None:
    for allowed in (0.5, 2.0):
        small = compress(
            small_model("encoder"), text_file, max_drop=allowed / 100, progress=False, seed=2
        )
        assert small.figures["drop_percent"] <= allowed
        known = survey(small.tokenizer, 400, [text_file], seed=2, progress=False)
        judge = Judge(open_model(small_model("encoder")), known.judging)
        assert judge(small.table).drop == pytest.approx(small.figures["drop_percent"], abs=1e-3)


def test_the_same_seed_gives_the_same_table(
    small_model: Callable[[str], Path], text_file: Path
) -> None:
    def made(seed: int) -> dict[str, torch.Tensor]:
        small = compress(small_model("encoder"), text_file, **QUICK, teach=True, seed=seed)
        return small.table.state_dict()

    one, same, other = made(0), made(0), made(1)
    assert all(torch.equal(tensor, same[name]) for name, tensor in one.items())
    assert not all(torch.equal(tensor, other[name]) for name, tensor in one.items())


def test_teaching_brings_outputs_closer_and_a_named_method_is_left_as_it_is(
    small_model: Callable[[str], Path], text_file: Path
) -> None:
    place = small_model("encoder")
    named, plain, taught = (
        compress(place, text_file, **QUICK, teach=teach) for teach in (None, False, True)
    )
    assert torch.equal(named.table.dense(), plain.table.dense())
    assert taught.figures["output_cosine"] > named.figures["output_cosine"]
    assert taught.figures["table"] == "product(num_codebooks=6), taught"
    assert taught.figures["bytes"] == named.figures["bytes"]


def test_what_was_searched_for_is_taught_unless_that_is_not_wanted(
    small_model: Callable[[str], Path], text_file: Path
) -> None:
    place = small_model("encoder")
    taught = compress(place, text_file, size="6%", progress=False)
    plain = compress(place, text_file, size="6%", teach=False, progress=False)
    assert taught.figures["table"] == plain.figures["table"] + ", taught"
    assert taught.figures["drop_percent"] < plain.figures["drop_percent"]
    assert len(taught.trials) > 1


@pytest.mark.parametrize("kind", ["causal", "gpt2", "masked", "classifier", "t5", "marian"])
def test_every_kind_of_model_goes_all_the_way(
    kind: str, small_model: Callable[[str], Path], text_file: Path, tmp_path: Path
) -> None:
    original = open_model(small_model(kind)).model
    small = compress(small_model(kind), text_file, size="24%", progress=False)
    assert type(small.model) is type(original)
    assert small.figures["bytes"] <= 0.24 * DENSE
    assert small.figures["output_cosine"] > 0.99
    small.save(tmp_path / "small")
    opened = smalti.load_model(tmp_path / "small")
    got = logits(opened)
    assert torch.equal(got, logits(small.model))
    # It is the table that answers: the dense one in its place gives nearly the same.
    original.get_input_embeddings().weight.data.copy_(small.table.dense())
    torch.testing.assert_close(got, logits(original), atol=1e-4, rtol=1e-4)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "small")
    assert tokenizer.get_vocab() == small.tokenizer.get_vocab()


@pytest.mark.parametrize("kind", ["causal", "gpt2"])
def test_a_compressed_language_model_writes_what_its_dense_twin_writes(
    kind: str, small_model: Callable[[str], Path], short_file: Path
) -> None:
    small = compress(small_model(kind), short_file, method="integer", progress=False).model
    dense = open_model(small_model(kind)).model
    dense.get_input_embeddings().weight.data.copy_(small.get_input_embeddings().table.dense())
    written = [
        model.generate(**INPUTS, max_new_tokens=5, do_sample=False, pad_token_id=0)
        for model in (small, dense)
    ]
    assert torch.equal(*written)


def test_a_loaded_model_stays_as_it_is(
    small_model: Callable[[str], Path], short_file: Path, trained_tokenizer: Any
) -> None:
    model = transformers.AutoModel.from_pretrained(small_model("encoder")).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    small = compress(model, short_file, tokenizer=trained_tokenizer, **QUICK)
    assert small.model is not model
    assert model.training
    assert isinstance(model.get_input_embeddings(), torch.nn.Embedding)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    by_name = compress(small_model("encoder"), short_file, **QUICK)
    assert torch.equal(small.table.dense(), by_name.table.dense())
    with pytest.raises(ConfigError, match="tokenizer="):
        compress(model, short_file, **QUICK)


def test_kept_rows_are_the_commonest_and_the_special_ones(
    small_model: Callable[[str], Path], text_file: Path
) -> None:
    small = compress(small_model("encoder"), text_file, keep=50, kept="float32", progress=False)
    table = small.table
    assert isinstance(table, PartialTable)
    known = survey(small.tokenizer, 400, [text_file], progress=False)
    commonest = torch.argsort(-known.counts.counts, stable=True)[:50]
    kept = table.kept_ids()
    assert set(kept.tolist()) == {0, 1, 2, 3, 4, *commonest.tolist()}
    weight = open_model(small_model("encoder")).model.get_input_embeddings().weight
    assert torch.equal(table.dense()[kept], weight[kept])


def test_labels_judge_a_classifier(
    small_model: Callable[[str], Path], text_file: Path, sentences: list[str]
) -> None:
    opened = open_model(small_model("classifier"))
    texts = sentences[:60]
    with torch.no_grad():
        inputs = [opened.tokenizer(text, return_tensors="pt") for text in texts]
        labels = torch.cat([opened.model(**one).logits.argmax(dim=1) for one in inputs])
    examples = Labelled(texts, None, labels, ("0", "1", "2"), "here")
    small = compress(
        small_model("classifier"), text_file, max_drop="5%", labelled=examples, progress=False
    )
    assert small.figures["original_score"] == 100
    assert small.figures["score"] >= 95
    assert small.figures["drop_percent"] == pytest.approx(100 - small.figures["score"], abs=1e-3)


def test_a_table_that_is_larger_than_before_is_said_aloud(
    small_model: Callable[[str], Path], short_file: Path
) -> None:
    settings = {"neighbours": 40}
    small = compress(
        small_model("encoder"), short_file, method="sparse", settings=settings, progress=False
    )
    assert small.figures["percent"] > 100
    assert any("not smaller" in note for note in small.notes)


def test_a_model_that_does_not_learn_says_so_when_it_is_told_to(
    small_model: Callable[[str], Path], short_file: Path
) -> None:
    small = compress(small_model("causal"), short_file, **QUICK, teach=True)
    assert any("do not learn" in note for note in small.notes)


def test_what_can_not_be_compressed_is_refused(
    small_model: Callable[[str], Path], short_file: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="ViTModel"):
        compress(small_model("vit"), short_file)
    compress(small_model("encoder"), short_file, **QUICK).save(tmp_path / "small")
    with pytest.raises(ConfigError, match="already"):
        compress(tmp_path / "small", short_file)
    with pytest.raises(DataError, match="there is no file"):
        compress(small_model("encoder"), tmp_path / "nothing.txt")
    with pytest.raises(DataError, match="no such file or directory"):
        compress(tmp_path / "nothing", short_file)


def test_a_plan_tells_sizes_and_writes_nothing(
    small_model: Callable[[str], Path], text_file: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    found = plan(small_model("causal"), [text_file], size="24%")
    assert (found["rows"], found["dim"], found["kind"]) == (400, 24, "causal")
    assert found["stands_at"] == ["model.embed_tokens", "lm_head"]
    assert found["would_try"]
    assert all(size <= 0.24 * DENSE for size in found["would_try"].values())
    json.dumps(found)
    (named,) = plan(small_model("causal"), [text_file], method="integer")["would_try"].values()
    # A byte a number, and a scale of two bytes a row.
    assert named == 400 * 24 + 400 * 2
    with pytest.raises(SmaltiError, match="leaves nothing to code"):
        plan(small_model("causal"), [text_file], keep=5000)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_real_encoder_keeps_its_outputs_at_a_twenty_fifth(
    opened_minilm: Any, tmp_path: Path
) -> None:
    import pydoc_data.topics

    paragraphs = " ".join("\n\n".join(pydoc_data.topics.topics.values()).split()).split(". ")
    texts = list(dict.fromkeys(text for text in paragraphs if 30 < len(text) < 120))
    (tmp_path / "seen.txt").write_text("\n".join(texts[:1100]), encoding="utf-8")
    small = compress("all-MiniLM-L6-v2", tmp_path / "seen.txt", size="4%", progress=False)
    assert small.figures["bytes"] <= 0.04 * 30522 * 384 * 4
    plain = compress(
        "all-MiniLM-L6-v2", tmp_path / "seen.txt", method="product", size="4%", progress=False
    )
    judge = Judge(opened_minilm, texts[1100:1200])
    assert judge(small.table).cosine > max(0.97, judge(plain.table).cosine)
    place = small.save(tmp_path / "small")
    loaded = smalti.load_model(place)
    assert torch.equal(logits(loaded), logits(small.model))
