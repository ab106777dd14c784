"""Saved directories: whole or not at all, complete, and never over somebody's files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

import smalti
from smalti.errors import ArtifactError, ConfigError
from smalti.hub import load_model, model_card, read_info

Make = Callable[..., Any]
SENTENCES = ["w7 w8 w9", "w50 w51", "w7 w99 w3 w4"]


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


@pytest.fixture
def tokenizer() -> Any:
    """Words w3 to w100, which are their own ids."""
    words = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, **{f"w{i}": i for i in range(3, 101)}}
    core = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "mask_token": "[MASK]"}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, model_max_length=40, **special
    )


@pytest.fixture
def model(make_model: Make, make_table: Make) -> Any:
    return smalti.replace_table(make_model("bert"), make_table(), name="someone/tiny-bert")


def test_a_directory_has_model_tokenizer_and_card(
    model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    place = smalti.save_model(model, tokenizer, tmp_path / "small")
    assert {"config.json", "model.safetensors", "README.md", "tokenizer.json"} <= set(names(place))
    assert names(tmp_path) == ["small"]
    again = transformers.AutoTokenizer.from_pretrained(place)
    assert again("w7 w9")["input_ids"] == [7, 9]


def test_the_card_says_how_to_load_and_what_was_lost(model: Any) -> None:
    card = model_card(model, {"accuracy before": 0.91, "accuracy after": 0.9})
    assert card.startswith("---\n")
    front = card.split("---\n")[1]
    assert "base_model: someone/tiny-bert" in front
    assert "- smalti" in front
    assert "import smalti\nfrom transformers import BertForMaskedLM" in card
    assert "random embedding table" in card
    assert "| accuracy after | 0.9 |" in card
    assert "smalti export" in card
    # By hand: 101 * 8 codes of 5 bits are 505 bytes; 8 * 17 * 4 halves are 1088.
    assert "| codes | 505 bytes |" in card
    assert "| codebooks | 1088 bytes |" in card
    assert "`cls.predictions.decoder`" in card
    assert "12.9 kB" in card


def test_a_card_of_ones_own_is_kept(model: Any, tmp_path: Path) -> None:
    place = smalti.save_model(model, None, tmp_path / "small", card="# Mine\n")
    assert (place / "README.md").read_text() == "# Mine\n"


def test_an_older_save_is_replaced_and_other_files_are_not(model: Any, tmp_path: Path) -> None:
    place = tmp_path / "small"
    smalti.save_model(model, None, place)
    smalti.save_model(model, None, place, card="second")
    assert (place / "README.md").read_text() == "second"
    (place / "notes.txt").write_text("mine")
    with pytest.raises(ArtifactError, match="small exists"):
        smalti.save_model(model, None, place)
    assert (place / "notes.txt").read_text() == "mine"
    smalti.save_model(model, None, place, overwrite=True)
    assert "notes.txt" not in names(place)


@pytest.mark.parametrize("content", ["directory", "file", "dense model"])
def test_what_smalti_did_not_write_is_not_replaced(
    model: Any, make_model: Make, tmp_path: Path, content: str
) -> None:
    place = tmp_path / "theirs"
    if content == "file":
        place.write_text("mine")
    elif content == "directory":
        place.mkdir()
        (place / "thesis.tex").write_text("mine")
    else:
        make_model("bert").save_pretrained(place)
    before = place.read_bytes() if content == "file" else names(place)
    with pytest.raises(ArtifactError, match="theirs exists"):
        smalti.save_model(model, None, place)
    assert (place.read_bytes() if content == "file" else names(place)) == before
    assert names(tmp_path) == ["theirs"]


def test_an_empty_directory_is_filled(model: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    smalti.save_model(model, None, tmp_path / "empty")
    assert "config.json" in names(tmp_path / "empty")


def test_a_failure_leaves_the_old_directory_and_nothing_else(model: Any, tmp_path: Path) -> None:
    class Broken:
        def save_pretrained(self, directory: Path) -> None:
            (directory / "half.json").write_text("{")
            raise OSError("no space left on device")

    smalti.save_model(model, None, tmp_path / "small")
    before = {p.name: p.read_bytes() for p in (tmp_path / "small").iterdir()}
    with pytest.raises(ArtifactError, match="no space left"):
        smalti.save_model(model, Broken(), tmp_path / "small")
    with pytest.raises(ArtifactError, match="no space left"):
        smalti.save_model(model, Broken(), tmp_path / "new")
    assert names(tmp_path) == ["small"]
    assert {p.name: p.read_bytes() for p in (tmp_path / "small").iterdir()} == before


def test_a_model_without_a_compressed_table_is_refused(make_model: Make, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="replace_table"):
        smalti.save_model(make_model("bert"), None, tmp_path / "small")
    with pytest.raises(ConfigError, match="replace_table"):
        model_card(make_model("bert"))
    assert names(tmp_path) == []


def test_what_a_directory_holds_can_be_read_without_loading_it(model: Any, tmp_path: Path) -> None:
    info = read_info(smalti.save_model(model, None, tmp_path / "small"))
    assert info["architecture"] == "BertForMaskedLM"
    assert info["task"] == "masked"
    assert info["table"]["codebook_size"] == 17
    assert info["sizes"]["total"] == 505 + 1088
    assert info["dense_bytes"] == 101 * 32 * 4
    assert set(info["places"]) == {"bert.embeddings.word_embeddings", "cls.predictions.decoder"}
    assert info["origin"] == {"name": "someone/tiny-bert"}
    assert info["checksums"] == "right"
    assert info["versions"]["transformers"] == transformers.__version__
    # The whole file but its header.
    expected = sum(p.nbytes for p in model.state_dict().values())
    assert info["model_bytes"] == expected - model.cls.predictions.bias.nbytes
    json.dumps(info)


def test_shards_are_sealed_too(model: Any, make_inputs: Make, tmp_path: Path) -> None:
    place = smalti.save_model(model, None, tmp_path / "small", max_shard_size="20kB")
    assert len(list(place.glob("*.safetensors"))) > 1
    inputs = make_inputs(model)
    with torch.no_grad():
        assert torch.equal(load_model(place)(**inputs).logits, model(**inputs).logits)
    assert read_info(place)["checksums"] == "right"


def test_a_plain_save_is_loaded_without_checksums(model: Any, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path)
    load_model(tmp_path)
    assert read_info(tmp_path)["checksums"] == "none"


def test_an_export_keeps_tokenizer_and_replaces_only_its_own(
    model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    small = smalti.save_model(model, tokenizer, tmp_path / "small", max_shard_size="20kB")
    for _ in range(2):
        dense = smalti.export_model(small, tmp_path / "dense")
    assert "tokenizer.json" in names(dense)
    assert "compressed" in (dense / "README.md").read_text()
    assert names(tmp_path) == ["dense", "small"]
    with pytest.raises(ArtifactError, match="onto itself"):
        smalti.export_model(small, small)
    (dense / "mine.txt").write_text("mine")
    with pytest.raises(ArtifactError, match="dense exists"):
        smalti.export_model(small, dense)
    with pytest.raises(ArtifactError, match="no smalti table"):
        smalti.export_model(dense, tmp_path / "twice")


def test_an_export_never_removes_what_it_is_made_of(
    model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    small = smalti.save_model(model, tokenizer, tmp_path / "all" / "small")
    before = names(small)
    with pytest.raises(ArtifactError, match="would remove"):
        smalti.export_model(small, tmp_path / "all", overwrite=True)
    with pytest.raises(ArtifactError, match="lies inside"):
        smalti.export_model(small, small / "child")
    assert names(small) == before


@pytest.fixture
def sentence_directory(make_model: Make, tokenizer: Any, tmp_path: Path) -> Path:
    """A directory of sentence-transformers with a tiny encoder."""
    library = pytest.importorskip("sentence_transformers")
    make_model("bert-encoder").save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    library.SentenceTransformer(str(tmp_path / "base"), device="cpu").save(
        str(tmp_path / "sentences"), create_model_card=False
    )
    shutil.rmtree(tmp_path / "base")
    return tmp_path / "sentences"


def to_old_layout(directory: Path) -> None:
    """As sentence-transformers 1 saved: the transformer in a folder of its own."""
    modules = json.loads((directory / "modules.json").read_text())
    inner = directory / "0_Transformer"
    inner.mkdir()
    others = {"modules.json", "config_sentence_transformers.json", inner.name}
    others |= {module["path"] for module in modules if module["path"]}
    for path in list(directory.iterdir()):
        if path.name not in others:
            path.rename(inner / path.name)
    for module in modules:
        module["path"] = module["path"] or inner.name
    (directory / "modules.json").write_text(json.dumps(modules))


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["new", "old"])
def test_sentence_transformers_opens_what_was_made_of_its_directory(
    sentence_directory: Path, make_table: Make, tmp_path: Path, layout: str
) -> None:
    from sentence_transformers import SentenceTransformer

    if layout == "old":
        to_old_layout(sentence_directory)
    opened = smalti.open_model(sentence_directory)
    assert opened.kind == "encoder"
    smalti.replace_table(opened.model, make_table())
    place = smalti.save_model(
        opened.model, opened.tokenizer, tmp_path / "small", source=sentence_directory
    )
    sentences = SentenceTransformer(str(place), device="cpu")
    found = torch.from_numpy(sentences.encode(SENTENCES))
    # Mean pooling, by itself.
    with torch.no_grad():
        for sentence, vector in zip(SENTENCES, found, strict=True):
            ids = opened.tokenizer(sentence, return_tensors="pt")["input_ids"]
            expected = opened.model(ids).last_hidden_state[0].mean(dim=0)
            torch.testing.assert_close(vector, expected, atol=1e-5, rtol=1e-4)
    sentences.save(str(tmp_path / "resaved"))
    again = SentenceTransformer(str(tmp_path / "resaved"), device="cpu")
    assert torch.equal(torch.from_numpy(again.encode(SENTENCES)), found)
    dense = smalti.export_model(place, tmp_path / "dense")
    exported = torch.from_numpy(SentenceTransformer(str(dense), device="cpu").encode(SENTENCES))
    torch.testing.assert_close(exported, found, atol=1e-6, rtol=1e-5)
    load_model(place)
