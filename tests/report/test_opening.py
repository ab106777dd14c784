"""Reports of what lies at a path, and what can't be reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import smalti
from smalti.embeddings import build_compressor
from smalti.errors import ArtifactError, ConfigError, SmaltiError
from smalti.quantizers import VectorQuantizer
from smalti.report import TableSubject, compare, make_report


@pytest.fixture
def saved(tmp_path: Path, subject: TableSubject) -> Path:
    tokens = [token or "" for token in subject.tokens]
    smalti.save_table(subject.table, tmp_path / "table", tokens, origin="a test")
    return tmp_path / "table"


def test_a_saved_table_comes_back_bit_for_bit_with_its_tokens(
    saved: Path, subject: TableSubject
) -> None:
    table, tokens, origin = smalti.load_table(saved)
    assert torch.equal(table.dense(), subject.table.dense())
    assert tokens == [token or "" for token in subject.tokens]
    assert origin == "a test"


def test_a_saved_table_is_reported_against_another(saved: Path, tmp_path: Path) -> None:
    original = build_compressor("full").fit(smalti.load_table(saved).table.dense())
    smalti.save_table(original, tmp_path / "original")
    made = make_report(saved, tmp_path / "original")
    found = made.as_dict()["findings"]["neighbours"]["numbers"]
    assert found["mean_overlap"] == 1.0
    assert made.tokens is not None
    assert "monday" in made.tokens["words"]


def test_a_run_is_reported_with_levels_codes_and_curves(trained: Path) -> None:
    found = make_report(trained).as_dict()["findings"]
    assert {
        "reconstructions",
        "code_distribution",
        "entropy_and_information",
        "training_curves",
        "training_curves_prior-top",
    } <= found.keys()
    ways = found["reconstructions"]["numbers"]["ways"]
    # Two codebooks of 8: grids of 2 x 2 at the top and of 4 x 4 below it.
    bits = [ways[name]["bits_per_image"] for name in ("top alone", "bottom alone", "all codes")]
    assert bits == [2 * 2 * 6, 4 * 4 * 6, 2 * 2 * 6 + 4 * 4 * 6]
    assert set(found["code_distribution"]["numbers"]["groups"]) == {"top", "bottom"}
    loss = found["training_curves"]["numbers"]["train: loss"]
    assert loss["step"][-1] == 12


def test_what_is_damaged_or_foreign_is_named(saved: Path, tmp_path: Path) -> None:
    cases: dict[str, Path] = {}
    cases["nothing at"] = tmp_path / "absent"
    (tmp_path / "empty").mkdir()
    cases["something else"] = tmp_path / "empty"
    smalti.save(VectorQuantizer(4, 8), tmp_path / "layer")
    cases["holds a quantizer"] = tmp_path / "layer"
    (tmp_path / "list.json").write_text("[1, 2]")
    cases["no trials"] = tmp_path / "list.json"
    (tmp_path / "text.txt").write_text("hello")
    cases["is a file"] = tmp_path / "text.txt"
    for word, place in cases.items():
        with pytest.raises(ArtifactError, match=word):
            make_report(place)
    tensors = saved / "tensors.safetensors"
    content = bytearray(tensors.read_bytes())
    content[-1] ^= 1
    tensors.write_bytes(content)
    with pytest.raises(ArtifactError, match="damaged"):
        make_report(saved)


def test_options_that_do_not_fit_are_refused(saved: Path, trained: Path) -> None:
    with pytest.raises(ConfigError, match="holds no image model"):
        make_report(saved, data="digits")
    with pytest.raises(ConfigError, match="holds no table"):
        make_report(trained, against="x")
    with pytest.raises(SmaltiError, match="no tokenizer"):
        make_report(saved, text=[trained / "missing.txt"])


def test_two_tables_are_compared_code_by_code(saved: Path, tmp_path: Path) -> None:
    same = compare(saved, saved)
    assert same["between"]["codes_changed"] == 0
    assert same["between"]["neighbours_lost"] == pytest.approx(0)
    assert same["between"]["rows_equal"] == 1
    from smalti.embeddings import PartialTable

    other = smalti.load_table(saved).table
    assert isinstance(other, PartialTable)
    # One byte is two codes of 16: both change.
    other.rest.codes[0] ^= 0x11
    smalti.save_table(other, tmp_path / "other")
    changed = compare(saved, tmp_path / "other")["between"]
    assert changed["codes_changed"] == pytest.approx(2 / (395 * 6))
    assert changed["rows_equal"] == pytest.approx(399 / 400)
    assert changed["rows_coded_alike"] == pytest.approx(395 / 400)
    assert json.loads(json.dumps(changed)) == changed


def test_two_runs_are_compared_on_the_same_images(trained: Path) -> None:
    found = compare(trained, trained)
    assert found["between"]["codes_changed"] == {"top": 0.0, "bottom": 0.0}
    assert found["a"] == found["b"]


def test_different_kinds_can_not_be_compared(saved: Path, trained: Path) -> None:
    with pytest.raises(ConfigError, match="can't compare"):
        compare(saved, trained)
