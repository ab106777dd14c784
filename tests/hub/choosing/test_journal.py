"""Trials that were written down are not made again; what is damaged is."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from smalti.data import Labelled
from smalti.embeddings import build_compressor
from smalti.errors import ArtifactError
from smalti.hub.choosing.candidates import Table
from smalti.hub.choosing.journal import Journal, about
from smalti.hub.choosing.judging import Verdict

ABOUT = {"model": "one", "seed": 0}
FOUR, EIGHT = (build_compressor("integer", bits=bits) for bits in (4, 8))
VERDICT = Verdict(0.987654321, score=80.5, original=None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def test_a_trial_comes_back_as_it_was(path: Path) -> None:
    journal = Journal(path, ABOUT)
    journal.add(FOUR, False, VERDICT, 1234, 5.5)
    journal.add(FOUR, True, Verdict(0.99), 1234, 7.5)
    again = Journal(path, ABOUT)
    assert again.find(FOUR, taught=False) == (VERDICT, 1234, 5.5)
    assert again.find(FOUR, taught=True) == (Verdict(0.99), 1234, 7.5)
    assert again.find(EIGHT, taught=False) is None


def test_another_search_is_begun_anew(path: Path) -> None:
    Journal(path, ABOUT).add(FOUR, False, VERDICT, 1, 1.0)
    other = Journal(path, {**ABOUT, "seed": 1})
    assert other.find(FOUR, taught=False) is None
    other.add(EIGHT, False, VERDICT, 2, 1.0)
    assert Journal(path, ABOUT).find(FOUR, taught=False) is None


def test_nothing_is_written_before_there_is_a_trial_and_nothing_is_left_at_the_end(
    path: Path,
) -> None:
    journal = Journal(path, ABOUT)
    assert not path.exists()
    journal.add(FOUR, False, VERDICT, 1, 1.0)
    assert path.exists()
    journal.close()
    assert not path.exists()
    Journal(None, ABOUT).add(FOUR, False, VERDICT, 1, 1.0)


@pytest.mark.parametrize("cut", [1, 10, 30, 60])
def test_a_line_that_was_cut_off_is_a_trial_not_made(path: Path, cut: int) -> None:
    journal = Journal(path, ABOUT)
    for compressor in (FOUR, EIGHT):
        journal.add(compressor, False, VERDICT, 1, 1.0)
    path.write_bytes(path.read_bytes()[: -1 - cut])
    again = Journal(path, ABOUT)
    assert again.find(FOUR, taught=False) == (VERDICT, 1, 1.0)
    assert again.find(EIGHT, taught=False) is None
    again.add(EIGHT, False, VERDICT, 2, 2.0)
    third = Journal(path, ABOUT)
    assert third.find(FOUR, taught=False) == (VERDICT, 1, 1.0)
    assert third.find(EIGHT, taught=False) == (VERDICT, 2, 2.0)


@pytest.mark.parametrize("content", [b"", b"\xff\x00\n", b"[]\n[]\n", b"{}"])
def test_a_foreign_file_is_no_journal(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    journal = Journal(path, ABOUT)
    assert journal.find(FOUR, taught=False) is None
    journal.add(FOUR, False, VERDICT, 1, 1.0)
    assert Journal(path, ABOUT).find(FOUR, taught=False) is not None


def test_a_place_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "none" / "journal", ABOUT)
    with pytest.raises(ArtifactError, match="can't write"):
        journal.add(FOUR, False, VERDICT, 1, 1.0)


def test_table_texts_and_labels_all_count() -> None:
    table = Table(torch.ones(3, 2), torch.ones(3))
    other = Table(torch.zeros(3, 2), torch.ones(3))
    scored = [
        Labelled(["a"], ["b"], torch.tensor([score]), (), "the same file") for score in (1.0, 2.0)
    ]
    made = [
        about(table, ["a"], None, seed=0),
        about(other, ["a"], None, seed=0),
        about(table, ["b"], None, seed=0),
        about(table, ["a"], None, seed=1),
        about(table, ["a"], scored[0], seed=0),
        about(table, ["a"], scored[1], seed=0),
    ]
    assert all(one != two for place, one in enumerate(made) for two in made[:place])
    assert about(table, ["a"], None, seed=0) == made[0]
