"""Texts come out of files as they stand there, and what is wrong is said by name and line."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from smalti.data import open_texts, read_lines, read_texts, write_lines
from smalti.data.lines import LONGEST_LINE
from smalti.errors import ArtifactError, DataError


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_a_plain_file_has_a_text_a_line_and_blank_ones_are_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "one\r\n\n  \n two words \nthree\u2028still three")
    assert list(read_texts(path)) == ["one", " two words ", "three\u2028still three"]


def test_any_file_may_be_gzipped_whatever_its_name(tmp_path: Path) -> None:
    packed = gzip.compress(b"sentence\tlabel\nfine film\t1\n")
    for name in ("a.tsv.gz", "b.tsv"):
        (tmp_path / name).write_bytes(packed)
        assert list(read_texts(tmp_path / name)) == ["fine film"]
    # And a file that a browser has unpacked without renaming it.
    assert list(read_texts(write(tmp_path / "c.txt.gz", "plain\n"))) == ["plain"]


def test_tsv_has_no_quoting(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", 'text\tlabel\n" open\t1\nsay "hi"\t0\n')
    assert list(read_texts(path)) == ['" open', 'say "hi"']


def test_csv_is_quoted_and_a_field_may_have_many_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'label,text\n1,"a, ""b""\nc"\n0,d\n')
    assert list(read_texts(path)) == ['a, "b"\nc', "d"]


def test_json_lines_may_lack_a_value(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"id": 1, "text": "a"}\n\n{"id": 2}\n{"text": null}\n')
    assert list(read_texts(path)) == ["a"]


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"\xef\xbb\xbfsentence\tlabel\nx\t1\n")
    assert open_texts(path).columns == ("sentence",)


@pytest.mark.parametrize(
    ("header", "chosen"),
    [
        ("index\tsentence1\tsentence2\tscore", ("sentence1", "sentence2")),
        ("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", ("#1 String", "#2 String")),
        ("index\tquestion\tsentence\tlabel", ("question", "sentence")),
        ("sentence\tlabel", ("sentence",)),
        ("Class Index\tTitle\tDescription", ("Title", "Description")),
    ],
)
def test_well_known_columns_are_found_and_said(
    tmp_path: Path, header: str, chosen: tuple[str, ...]
) -> None:
    row = "\t".join("x" for _ in header.split("\t"))
    file = open_texts(write(tmp_path / "a.tsv", f"{header}\n{row}\n"))
    assert file.columns == chosen
    assert str(file).endswith(f"{' and '.join(chosen)} (by name)")
    assert list(file.texts()) == ["x"] * len(chosen)


def test_without_a_header_columns_of_several_words_are_texts(tmp_path: Path) -> None:
    rows = "gj04\t1\t\tThe sailors rode the breeze.\ngj04\t0\t*\tThe car honked down the road.\n"
    file = open_texts(write(tmp_path / "a.tsv", rows))
    assert (file.columns, file.chosen) == (("4",), "by content")
    assert next(file.texts()) == "The sailors rode the breeze."


@pytest.mark.parametrize("columns", [("said",), "said", (2,), ("2",)])
def test_columns_are_named_or_numbered_from_one(
    tmp_path: Path, columns: tuple[str | int, ...]
) -> None:
    path = write(tmp_path / "a.tsv", "who\tsaid\nshe\tthis is it\nhe\tno it is not\n")
    assert list(read_texts(path, columns)) == ["this is it", "no it is not"]


def test_lines_may_begin_with_a_label(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "0 How far is it ?\n3 Who was Galileo ?\n")
    assert list(read_texts(path, (2,))) == ["How far is it ?", "Who was Galileo ?"]


def test_texts_of_several_files_follow_each_other(tmp_path: Path) -> None:
    one, two = write(tmp_path / "1.txt", "a\n"), write(tmp_path / "2.txt", "b\n")
    assert list(read_texts([one, open_texts(two)])) == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"", "a.txt is empty"),
        ("a.txt", b"\n \n", "holds no texts"),
        ("a.tsv", b"sentence\tlabel\n", "holds no texts"),
        ("a.txt", b"fine\nbad \xff\n", "line 2 of .*a.txt is not"),
        ("a.txt", b"PK\x03\x04\0\0", "line 1 of .*a.txt holds zero bytes"),
        ("a.txt", gzip.compress(b"some text " * 99)[:20], "damaged gzip"),
        ("a.txt", gzip.compress(b"some text " * 99)[:-6] + b"wrong!", "damaged gzip"),
        ("a.txt", b"x" * (LONGEST_LINE + 1), "line 1 of .* longer than 16 MB"),
        ("a.tsv", b"sentence\tlabel\na\t1\nb\n", "expected 2 columns in line 3 .* got 1"),
        ("a.tsv", b"1\tone two three\n2\n", "expected 2 columns in line 2 .* got 1"),
        ("a.tsv", b"who\tsaid\nhe\tso it goes\n", "its columns are: who, said; name them"),
        ("a.tsv", b"1\t2\n3\t4\n", "in its first line: 1 | 2"),
        ("a.jsonl", b'{"text": "a"}\n[1]\n', "expected a JSON object a line, got '.1.' in line 2"),
        ("a.jsonl", b'{"text": "a"}\n{\n', "expected a JSON object a line, but line 2"),
        ("a.jsonl", b'{"text": ["a"]}\n', "expected text in column text of line 1"),
        ("a.jsonl", b'{"words": "a"}\n', "its columns are: words; name them"),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else "",
)
def test_what_is_wrong_with_a_file_is_said(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        list(read_texts(tmp_path / name))


def test_an_unknown_column_lists_the_known_ones(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "sentence\tlabel\nx\t1\n")
    with pytest.raises(DataError, match=r"no column 'words' .* columns are: sentence, label"):
        open_texts(path, ("words",))
    with pytest.raises(DataError, match="from 1 to 2"):
        open_texts(path, (0,))


def test_missing_files_and_folders_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    good = write(tmp_path / "a.txt", "a\n")
    with pytest.raises(DataError, match=r"there is no file .*b\.txt"):
        read_texts([good, tmp_path / "b.txt"])
    with pytest.raises(DataError, match="is a directory"):
        read_texts(tmp_path)
    with pytest.raises(DataError, match="at least one file"):
        read_texts([])


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "columns", "texts"),
    [
        ("glue/CoLA/train.tsv", (), 8551),
        ("glue/CoLA/dev.tsv", (), 1043),
        ("glue/SST-2/dev.tsv", (), 872),
        ("glue/MRPC/train.tsv", (), 2 * 3667),
        ("glue/STS-B/train.tsv", (), 2 * 5749),
        ("glue/RTE/train.tsv", (), 2 * 2490),
        ("glue/QNLI/dev.tsv", (), 2 * 5463),
        ("multi30k/val.en", (), 1014),
        ("text/agnews/test.tsv", (), 7600),
        ("text/trec/trec_test.txt", (2,), 500),
    ],
)
def test_public_sets_are_read_in_full(
    public: Callable[[str], Path], name: str, columns: tuple[int, ...], texts: int
) -> None:
    assert sum(1 for _ in read_texts(public(name), columns)) == texts


@pytest.mark.parametrize("name", ["out.txt", "out.txt.gz"])
def test_written_lines_are_read_again_and_replace_a_file_whole(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    for lines in (["old"], ["one", "", "drei ü"]):
        write_lines(path, lines)
    assert [line for _, line in read_lines(path)] == ["one", "", "drei ü"]
    assert [found.name for found in tmp_path.iterdir()] == [name]
    with pytest.raises(ArtifactError, match="can't write"):
        write_lines(tmp_path / "nowhere" / name, ["one"])
