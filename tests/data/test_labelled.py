"""Labelled sets come out with the right texts, scores and classes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from smalti.data import read_labelled
from smalti.errors import DataError


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_pairs_with_scores(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "sentence1\tsentence2\tscore\na\tb\t5.000\nc\td\t2\n")
    found = read_labelled(path)
    assert (found.first, found.second) == (["a", "c"], ["b", "d"])
    assert found.labels.dtype == torch.float32
    assert found.labels.tolist() == [5.0, 2.0]
    assert found.classes == ()
    assert found.source.endswith("columns sentence1 and sentence2 (by name), label score")


def test_classes_are_numbered_in_order_of_their_names(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "sentence\tlabel\na\tpos\nb\tneg\nc\tpos\n")
    found = read_labelled(path)
    assert found.second is None
    assert found.classes == ("neg", "pos")
    assert found.labels.dtype == torch.int64
    assert found.labels.tolist() == [1, 0, 1]


def test_numbers_as_classes_are_ordered_as_numbers(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "a", "label": 10}\n{"text": "b", "label": 9}\n')
    found = read_labelled(path)
    assert (found.classes, found.labels.tolist()) == (("9", "10"), [1, 0])


def test_a_label_that_is_not_whole_makes_scores(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "sentence1,sentence2,label\na,b,1\nc,d,2.4\n")
    torch.testing.assert_close(read_labelled(path).labels, torch.tensor([1.0, 2.4]))


def test_a_test_set_takes_the_classes_of_its_training_set(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "sentence\tlabel\na\tpos\n")
    assert read_labelled(path, classes=("neg", "pos")).labels.tolist() == [1]
    with pytest.raises(DataError, match="expected the classes neg, bad, got also pos"):
        read_labelled(path, classes=("neg", "bad"))


def test_without_a_header_the_label_is_the_column_of_numbers_or_the_only_other(
    tmp_path: Path,
) -> None:
    rows = "gj04\t1\t\tThe sailors rode the breeze.\ngj04\t0\t*\tThe car honked down the road.\n"
    assert read_labelled(write(tmp_path / "a.tsv", rows)).labels.tolist() == [1, 0]
    rows = "Stocks fell again on Monday\tBusiness\nThey won the last game\tSports\n"
    assert read_labelled(write(tmp_path / "b.tsv", rows)).classes == ("Business", "Sports")


def test_lines_begin_with_their_label(tmp_path: Path) -> None:
    found = read_labelled(write(tmp_path / "a.txt", "LOC Where is it ?\nHUM Who was he ?\n"))
    assert found.first == ["Where is it ?", "Who was he ?"]
    assert (found.classes, found.labels.tolist()) == (("HUM", "LOC"), [1, 0])


def test_columns_can_be_given(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "said\tmood\twho\nyes\tgood\tx\n")
    for texts in (("said",), "said", (1,)):
        found = read_labelled(path, texts=texts, label="mood")
        assert (found.first, found.classes) == (["yes"], ("good",))


def test_examples_that_stand_in_another_set_can_be_dropped(tmp_path: Path) -> None:
    train = read_labelled(write(tmp_path / "a.tsv", "text\tlabel\na\t0\nb\t1\nc\t1\n"))
    test = read_labelled(write(tmp_path / "b.tsv", "text\tlabel\nb\t0\n"))
    left = train.without(test)
    assert (left.first, left.labels.tolist(), len(left)) == (["a", "c"], [0, 1], 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sentence\tid\na b c\tx\n", "which column .* holds the label: .* sentence, id"),
        ("sentence\tlabel\na\t\n", "expected text and a label in line 2"),
        ("sentence\tlabel\n", "holds no texts"),
        ("sentence1\tsentence2\tscore\na\tb\thigh\n", "expected numbers as scores"),
        ("sentence1\tsentence2\tscore\na\tb\tnan\n", "not finite"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_labelled(write(tmp_path / "a.tsv", content))


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "rows", "pairs", "classes"),
    [
        ("glue/SST-2/dev.tsv", 872, False, ("0", "1")),
        ("glue/CoLA/dev.tsv", 1043, False, ("0", "1")),
        ("glue/MRPC/dev.tsv", 408, True, ("0", "1")),
        ("glue/RTE/dev.tsv", 277, True, ("entailment", "not_entailment")),
        ("glue/QNLI/dev.tsv", 5463, True, ("entailment", "not_entailment")),
        ("text/agnews/test.tsv", 7600, False, ("Business", "Sci/Tech", "Sports", "World")),
        ("text/trec/trec_test.txt", 500, False, ("0", "1", "2", "3", "4", "5")),
        ("glue/STS-B/dev.tsv", 1500, True, ()),
    ],
)
def test_public_sets_are_read_as_they_are_described(
    public: Callable[[str], Path], name: str, rows: int, pairs: bool, classes: tuple[str, ...]
) -> None:
    found = read_labelled(public(name))
    assert len(found) == len(found.labels) == rows
    assert (found.second is not None) == pairs
    assert found.classes == classes


@pytest.mark.data
def test_eight_texts_of_ag_news_stand_in_both_parts(public: Callable[[str], Path]) -> None:
    train = read_labelled(public("text/agnews/train_subset10k.tsv"))
    test = read_labelled(public("text/agnews/test.tsv"), classes=train.classes)
    assert len(set(train.first) & set(test.first)) == 8
    assert not set(train.without(test).first) & set(test.first)
