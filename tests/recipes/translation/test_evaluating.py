"""Evaluation: scores of real translations under the names of how they were made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smalti.data import AlignedTexts, read_aligned
from smalti.errors import DataError
from smalti.recipes.translation import evaluate_translation_run, score, translate_texts
from smalti.translation import Decoding


@pytest.fixture
def pairs(folder: Path) -> AlignedTexts:
    return read_aligned(folder / "valid.xx", folder / "valid.yy")


def test_greedy_and_beam_are_rows_of_their_own(run: Any, pairs: AlignedTexts) -> None:
    found = evaluate_translation_run(run, pairs, timed=3)
    assert list(found.scores) == ["greedy", "beam_2"]
    greedy = translate_texts(run, pairs.source, Decoding()).texts
    assert found.scores["greedy"] == score(greedy, pairs.target)
    assert found.bounds == {}
    assert found.codes is None
    assert all(one.milliseconds > 0 for one in found.latency.values())
    assert found.table_bytes == found.full_table_bytes == len(run.subwords) * 32 * 4


def test_the_clean_up_of_repeats_is_never_the_plain_row(run: Any, pairs: AlignedTexts) -> None:
    options = replace(run.decoding, clean_repeats=True)
    found = evaluate_translation_run(run, pairs, options, timed=0)
    assert list(found.scores) == ["greedy", "beam_2", "without_repeats"]
    assert found.latency == {}


def test_no_sentences_are_refused(run: Any) -> None:
    with pytest.raises(DataError, match="at least one"):
        evaluate_translation_run(run, AlignedTexts((), (), ("a", "b")))
