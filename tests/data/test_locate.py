"""Data sets are found where they may be, and a missing one says where to get it."""

from __future__ import annotations

from pathlib import Path

import pytest

from smalti.data import locate
from smalti.errors import DataError


def test_the_named_folder_comes_before_the_local_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, name in (("named", "dev.tsv.gz"), ("data", "dev.tsv"), ("data", "train.tsv")):
        path = tmp_path / folder / "glue" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SMALTI_DATA", str(tmp_path / "named"))
    assert locate("glue/dev.tsv") == tmp_path / "named" / "glue" / "dev.tsv.gz"
    assert locate("glue/train.tsv").resolve() == tmp_path / "data" / "glue" / "train.tsv"
    monkeypatch.delenv("SMALTI_DATA")
    assert locate("glue/dev.tsv").resolve() == tmp_path / "data" / "glue" / "dev.tsv"


def test_a_missing_set_says_what_was_looked_for_where_and_where_it_is_public(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SMALTI_DATA", str(tmp_path / "named"))
    with pytest.raises(DataError) as caught:
        locate("glue/STS-B/dev.tsv")
    for part in ("glue/STS-B/dev.tsv", str(tmp_path / "named"), "gluebenchmark.com", "SMALTI_DATA"):
        assert part in str(caught.value)
    with pytest.raises(DataError, match="the known ones begin with"):
        locate("nowhere/file.txt")
