"""Tasks of GLUE: which examples are for what."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from smalti.data import GLUE, read_glue
from smalti.errors import ConfigError, DataError


@pytest.fixture
def sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An RTE of 45 training pairs and 20 others."""
    folder = tmp_path / "glue" / "RTE"
    folder.mkdir(parents=True)
    for name, amount in (("train", 45), ("dev", 20)):
        rows = [
            f"{n}\t{name} first {n}\tand second {n}\t{'not_' * (n % 2)}entailment"
            for n in range(amount)
        ]
        text = "\n".join(["index\tsentence1\tsentence2\tlabel", *rows])
        (folder / f"{name}.tsv").write_text(text + "\n")
    monkeypatch.setenv("SMALTI_DATA", str(tmp_path))


def number(text: str) -> int:
    return int(text.rsplit(maxsplit=1)[-1])


@pytest.mark.usefixtures("sets")
def test_a_tenth_of_the_training_set_validates_as_the_papers_library_splits() -> None:
    split = read_glue("RTE")
    order = np.random.default_rng(42).permutation(45)
    # The tenth is rounded up, and comes first.
    assert [number(text) for text in split.valid.first] == order[:5].tolist()
    assert [number(text) for text in split.train.first] == order[5:].tolist()
    assert len(split.test) == 20
    assert all(text.startswith("dev") for text in split.test.first)
    assert split.train.classes == split.test.classes == ("entailment", "not_entailment")


@pytest.mark.usefixtures("sets")
def test_caps_take_a_part_of_what_there_would_be() -> None:
    whole, some = read_glue("RTE"), read_glue("RTE", most=12, test_most=7)
    assert some.train.first == whole.train.first[:12]
    # A tenth of 12, rounded up.
    assert some.valid.first == whole.valid.first[:2]
    assert len(some.test) == 7
    assert set(some.test.first) < set(whole.test.first)
    assert some.test.first == read_glue("RTE", test_most=7).test.first


@pytest.mark.usefixtures("sets")
def test_what_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match="STS-B"):
        read_glue("WNLI")
    with pytest.raises(DataError, match="CoLA/train"):
        read_glue("CoLA")
    with pytest.raises(DataError, match="RTE/all"):
        read_glue("RTE", train_file="all.tsv")


@pytest.mark.data
@pytest.mark.parametrize("task", ["CoLA", "MRPC", "STS-B", "QNLI", "RTE"])
def test_the_real_files_are_read(task: str, public: Callable[[str], Path]) -> None:
    public(f"glue/{task}/dev.tsv")
    split = read_glue(task)
    assert (split.test.second is None) == (task == "CoLA")
    assert bool(split.test.classes) == (GLUE[task].score != "spearman")
    if task == "CoLA":
        # By hand: the file has 8,551 sentences.
        assert (len(split.train), len(split.valid), len(split.test)) == (7695, 856, 1043)
