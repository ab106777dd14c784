"""Distilling: the file that translating gives, taken up where it was stopped."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smalti.data import read_lines
from smalti.errors import DataError
from smalti.recipes.translation import distill, translate_texts
from smalti.recipes.translation.translating import Batches
from smalti.translation import Decoding

from .conftest import write_pairs


class StoppedError(Exception):
    """Stands for whatever ends a process."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = write_pairs(tmp_path, "more", 50, seed=4)[0]
    path.write_text(path.read_text() + "\n" + "ba de " * 40 + "\n")
    return path


def stopped_after(monkeypatch: pytest.MonkeyPatch, batches: int) -> None:
    whole = Batches.translated

    def few(self: Any, *given: Any, **named: Any) -> Any:
        for number, found in enumerate(whole(self, *given, **named)):
            if number == batches:
                raise StoppedError
            yield found

    monkeypatch.setattr(Batches, "translated", few)


def test_it_writes_what_translating_gives(tmp_path: Path, run: Any, source: Path) -> None:
    output = tmp_path / "out.yy"
    found = distill(run, source, output)
    lines = [line for _, line in read_lines(source)]
    written = [line for _, line in read_lines(output)]
    assert written == list(translate_texts(run, lines).texts)
    assert (found.lines, found.found, found.split) == (52, 0, 1)
    assert written[50] == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["more.xx", "more.yy", "out.yy"]


def test_it_goes_on_where_it_was_stopped(
    tmp_path: Path, run: Any, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, output = tmp_path / "whole.yy", tmp_path / "out.yy.gz"
    distill(run, source, whole, batch_tokens=60)
    with monkeypatch.context() as patch:
        stopped_after(patch, 3)
        with pytest.raises(StoppedError):
            distill(run, source, output, batch_tokens=60)
    assert not output.exists()
    journal = tmp_path / "out.yy.gz.journal"
    done = [json.loads(line) for line in journal.read_text().splitlines()[1:]]
    assert len(done) == 3
    # A process that is killed may leave half a line.
    journal.write_text(journal.read_text() + '[3, ["half')
    found = distill(run, source, output, batch_tokens=60, resume=True)
    assert found.found == sum(len(texts) for _, texts in done)
    assert list(read_lines(output)) == list(read_lines(whole))
    assert not journal.exists()


def test_what_was_begun_is_not_lost_and_not_mixed_with_another(
    tmp_path: Path, run: Any, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.yy"
    with monkeypatch.context() as patch:
        stopped_after(patch, 1)
        with pytest.raises(StoppedError):
            distill(run, source, output, batch_tokens=60)
    journal = (tmp_path / "out.yy.journal").read_bytes()
    with pytest.raises(DataError, match="--resume"):
        distill(run, source, output, batch_tokens=60)
    other = replace(run.decoding, beam=3)
    with pytest.raises(DataError, match="another model, file or way"):
        distill(run, source, output, other, batch_tokens=60, resume=True)
    assert (tmp_path / "out.yy.journal").read_bytes() == journal


def test_the_file_itself_is_not_overwritten(run: Any, source: Path) -> None:
    before = source.read_bytes()
    with pytest.raises(DataError, match="the file to translate"):
        distill(run, source, source, Decoding())
    assert source.read_bytes() == before
