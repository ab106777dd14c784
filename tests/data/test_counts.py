"""Tokens are counted as the model sees them, and counts know whose they are."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from smalti.data import TokenCounts, count_tokens, fingerprint, read_texts
from smalti.errors import ConfigError, DataError

TEXTS = ["The cat saw the dog.", "A dog", "the cat, the cat"]


def test_counts_are_those_of_the_tokenizer(byte_pairs: Any) -> None:
    found = count_tokens(TEXTS, byte_pairs, rows=500, sources=["by hand"])
    expected = Counter(id_ for text in TEXTS for id_ in byte_pairs.encode(text).ids)
    assert found.counts.dtype == torch.int64
    assert {i: n for i, n in enumerate(found.counts.tolist()) if n} == dict(expected)
    assert (found.rows, found.texts, found.sources) == (500, 3, ("by hand",))
    assert (found.tokens, found.occurring) == (sum(expected.values()), len(expected))


def test_tokens_around_a_text_count_and_padding_and_truncation_do_not(minilm: Any) -> None:
    # This tokenizer's file asks for padding and truncation to 128 tokens.
    found = count_tokens(["dog " * 300, "dog"], minilm, rows=30_522)
    vocabulary = minilm.get_vocab()
    counts = {token: int(found.counts[vocabulary[token]]) for token in ("dog", "[CLS]", "[PAD]")}
    assert counts == {"dog": 301, "[CLS]": 2, "[PAD]": 0}
    assert found.tokens == 301 + 2 * 2


def test_counting_leaves_the_tokenizer_as_it_was_and_says_nothing(
    byte_pairs: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    byte_pairs.enable_truncation(2)
    byte_pairs.enable_padding()
    assert count_tokens(["the cat saw"], byte_pairs, rows=500).tokens > 2
    assert len(byte_pairs.encode("the cat saw the dog")) == 2
    assert byte_pairs.padding is not None
    assert capfd.readouterr() == ("", "")


def test_a_tokenizer_without_a_compiled_one_inside_is_called() -> None:
    class Words:
        """Splits at spaces, as a tokenizer written in Python does."""

        def get_vocab(self) -> dict[str, int]:
            return {"a": 0, "b": 1}

        def __call__(self, texts: list[str], **_: Any) -> dict[str, list[list[int]]]:
            return {"input_ids": [[self.get_vocab()[w] for w in t.split()] for t in texts]}

    assert count_tokens(["a b", "b"], Words(), rows=3).counts.tolist() == [1, 2, 0]


def test_texts_are_read_as_a_stream_in_batches(byte_pairs: Any) -> None:
    def stream() -> Iterator[str]:
        for _ in range(2_500):
            yield "cat"
        yield "dog " * 300_000
        yield "cat"

    one = count_tokens(["cat"], byte_pairs, rows=500).counts
    dogs = count_tokens(["dog " * 3_000], byte_pairs, rows=500).counts
    found = count_tokens(stream(), byte_pairs, rows=500)
    once = one > dogs
    assert found.texts == 2_502
    assert torch.equal(found.counts[once], 2_501 * one[once])


def test_a_bar_is_drawn_on_stderr_when_asked_for(
    byte_pairs: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    count_tokens(TEXTS, byte_pairs, rows=500, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "counting" in err
    assert "tokens" in err


def test_saved_counts_come_back_for_the_same_tokenizer(tmp_path: Path, byte_pairs: Any) -> None:
    path = tmp_path / "counts.json"
    made = count_tokens(TEXTS, byte_pairs, rows=500, sources=["by hand"])
    made.save(path)
    made.save(path)
    found = TokenCounts.load(path, copy.deepcopy(byte_pairs))
    assert torch.equal(found.counts, made.counts)
    assert (found.texts, found.sources, found.tokenizer) == (3, ("by hand",), made.tokenizer)
    assert [file.name for file in tmp_path.iterdir()] == ["counts.json"]
    assert TokenCounts.load(path, byte_pairs, rows=600).counts.sum() == made.tokens


def test_counts_of_another_tokenizer_are_refused(tmp_path: Path, byte_pairs: Any) -> None:
    count_tokens(TEXTS, byte_pairs, rows=500).save(tmp_path / "counts.json")
    other = copy.deepcopy(byte_pairs)
    other.add_tokens(["new"])
    assert fingerprint(other) != fingerprint(byte_pairs)
    with pytest.raises(DataError, match="made with another tokenizer"):
        TokenCounts.load(tmp_path / "counts.json", other)
    with pytest.raises(DataError, match=r"beyond the table's 50 rows: .*another model's tokenizer"):
        TokenCounts.load(tmp_path / "counts.json", byte_pairs, rows=50)
    with pytest.raises(DataError, match=r"below the table's 50 rows, got .*another model's"):
        count_tokens(TEXTS, byte_pairs, rows=50)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "x"}, "does not hold token counts"),
        ({"format_version": 9}, "format version 9"),
        ({"tokens": 1}, "do not add up"),
        ({"counts": [1, "a"]}, "damaged"),
        ({"counts": None}, "damaged"),
    ],
)
def test_damaged_files_are_refused(
    tmp_path: Path, byte_pairs: Any, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "counts.json"
    count_tokens(TEXTS, byte_pairs, rows=500).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DataError, match=message):
        TokenCounts.load(path, byte_pairs)


def test_files_that_are_not_there_or_not_json_are_refused(tmp_path: Path, byte_pairs: Any) -> None:
    with pytest.raises(DataError, match="there is no file"):
        TokenCounts.load(tmp_path / "counts.json", byte_pairs)
    (tmp_path / "counts.json").write_bytes(b"\xff{")
    with pytest.raises(DataError, match="damaged"):
        TokenCounts.load(tmp_path / "counts.json", byte_pairs)
    with pytest.raises(DataError, match="can't write"):
        count_tokens(TEXTS, byte_pairs, rows=500).save(tmp_path / "no" / "counts.json")


def test_nothing_to_count_and_no_tokenizer_are_refused(byte_pairs: Any) -> None:
    with pytest.raises(DataError, match="at least one text"):
        count_tokens([], byte_pairs, rows=500)
    with pytest.raises(ConfigError, match=r"expected a tokenizer .* got str"):
        count_tokens(TEXTS, "bert", rows=500)


@pytest.mark.data
@pytest.mark.parametrize(("task", "words"), [("STS-B", 10_794), ("CoLA", 5_585), ("MRPC", 11_561)])
def test_the_papers_numbers_of_tokens_are_met(
    minilm: Any, public: Callable[[str], Path], task: str, words: int
) -> None:
    # Table 1 of the partial sparse coding paper; the two tokens around a text come on top.
    found = count_tokens(read_texts(public(f"glue/{task}/train.tsv")), minilm, rows=30_522)
    assert found.occurring == words + 2
