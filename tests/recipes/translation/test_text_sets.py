"""Which files are meant, and which pairs of them are used."""

from __future__ import annotations

from pathlib import Path

import pytest

from smalti.errors import ConfigError, DataError
from smalti.recipes.translation import TextSettings, find_pair
from smalti.recipes.translation.text_sets import read_training_texts


def settings(folder: Path, **changes: object) -> TextSettings:
    files = {"source": str(folder / "train.xx"), "target": str(folder / "train.yy")}
    return TextSettings(**{**files, **changes})


def test_without_files_for_it_a_share_is_held_out_the_same_for_every_seed(folder: Path) -> None:
    one = read_training_texts(settings(folder, valid_share=0.1))
    assert len(one.valid) == 30
    assert len(one.train) == 270
    assert set(zip(one.train.source, one.train.target, strict=True)) | set(
        zip(one.valid.source, one.valid.target, strict=True)
    ) == set(
        zip(
            (folder / "train.xx").read_text().splitlines(),
            (folder / "train.yy").read_text().splitlines(),
            strict=True,
        )
    )
    assert read_training_texts(settings(folder, valid_share=0.1)).valid == one.valid
    other = read_training_texts(settings(folder, valid_share=0.1, split_seed=1))
    assert other.valid != one.valid


def test_further_sentences_are_learned_and_never_held_out(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "more.xx").write_text("ba\nde\n")
    (tmp_path / "more.yy").write_text("Ab\nEd\n")
    more = {"more_source": tmp_path / "more.xx", "more_distilled": tmp_path / "more.yy"}
    plain = read_training_texts(settings(folder, valid_share=0.1))
    made = read_training_texts(
        settings(folder, valid_share=0.1, **{name: str(path) for name, path in more.items()})
    )
    assert made.train.source == (*plain.train.source, "ba", "de")
    assert made.train.target == (*plain.train.target, "Ab", "Ed")
    assert (made.valid, made.vocabulary) == (plain.valid, plain.vocabulary)
    assert made.fingerprint != plain.fingerprint


@pytest.mark.parametrize("alone", ["valid_source", "more_source", "more_distilled"])
def test_files_that_need_one_another_are_asked_for_together(folder: Path, alone: str) -> None:
    with pytest.raises(ConfigError, match=f"both .*{alone}.*, or neither"):
        settings(folder, **{alone: str(folder / "train.xx")})


def test_pairs_that_are_blank_on_a_side_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "train.xx").write_text("one\n\nthree\nfour\n" + "five\n" * 6)
    (tmp_path / "train.yy").write_text("eins\nzwei\n \nvier\n" + "fünf\n" * 6)
    found = read_training_texts(settings(tmp_path, valid_share=0.1))
    assert len(found.train) + len(found.valid) in (8, 9)
    assert not {"", " ", "zwei", "three"} & {*found.train.source, *found.train.target}


def test_both_files_are_found_by_what_their_names_begin_with(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained_on = settings(folder)
    expected = (folder / "valid.xx", folder / "valid.yy")
    assert find_pair(folder / "valid", None, trained_on) == expected
    assert find_pair(folder / "valid.xx", None, trained_on) == expected
    assert find_pair(folder / "valid.xx", folder / "train.yy", trained_on)[1].name == "train.yy"
    monkeypatch.setenv("SMALTI_DATA", str(folder.parent))
    assert find_pair(f"{folder.name}:valid", None, trained_on) == expected


def test_a_pair_that_can_not_be_guessed_asks_for_the_reference(folder: Path) -> None:
    unnamed = TextSettings(source="source", target="target")
    with pytest.raises(DataError, match="--reference"):
        find_pair(folder / "valid.xx", None, unnamed)
