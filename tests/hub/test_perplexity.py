"""Perplexity of causal models."""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import smalti
from smalti.errors import ConfigError, DataError
from smalti.hub import outputs
from smalti.hub.perplexity import RunningText, lead_of, perplexity, read_running, windows


def running(count: int, lead: tuple[int, ...] = ()) -> RunningText:
    ids = torch.randint(5, 101, (count,), generator=torch.Generator().manual_seed(2))
    return RunningText(ids, lead, "made up")


def token_by_token(model: Any, text: RunningText, context: int, stride: int) -> tuple[float, int]:
    """Each token by a forward pass of its own in float64, over what its window shows before it."""
    model = model.double()
    lead, ids = list(text.lead), text.ids.tolist()
    room = context - len(lead)
    total, predicted = 0.0, 0
    for place in range(0 if lead else 1, len(ids)):
        # The first window of those at 0, stride, 2 stride ... that reaches the token.
        window = 0 if place < room else -(-(place - room + 1) // stride)
        seen = lead + ids[window * stride : place]
        with torch.no_grad():
            scores = model(torch.tensor([seen])).logits[0, -1]
        total -= float(scores.log_softmax(dim=0)[ids[place]])
        predicted += 1
    model.float()
    return math.exp(total / predicted), predicted


@pytest.mark.parametrize("name", ["llama", "gpt2"])
@pytest.mark.parametrize("lead", [(), (2,)])
@pytest.mark.parametrize(("count", "context", "stride"), [(30, 12, 5), (30, 12, 11), (9, 12, 4)])
def test_perplexity_is_that_of_predicting_token_by_token(
    make_model: Callable[[str], Any],
    name: str,
    lead: tuple[int, ...],
    count: int,
    context: int,
    stride: int,
) -> None:
    model, text = make_model(name), running(count, lead)
    stride = min(stride, context - len(lead) - 1)
    expected, predicted = token_by_token(model, text, context, stride)
    found = perplexity(model, text, context=context, stride=stride)
    assert found.tokens == predicted
    assert found.value == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_a_compressed_table_predicts_as_its_dense_form_does(
    make_model: Callable[[str], Any], make_table: Callable[..., Any], name: str
) -> None:
    model, text = make_model(name), running(40)
    smalti.replace_table(model, make_table())
    found = perplexity(model, text, context=16, stride=8).value
    expected, _ = token_by_token(model.dequantize(), text, 16, 8)
    assert found == pytest.approx(expected, rel=1e-5)


def test_the_size_of_the_pieces_does_not_matter(
    make_model: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, text = make_model("llama"), running(50)
    whole = perplexity(model, text, context=20, stride=10)
    monkeypatch.setattr(outputs, "PIECE", 3 * 101)
    pieces = perplexity(model, text, context=20, stride=10)
    assert pieces.tokens == whole.tokens == 49
    assert pieces.value == pytest.approx(whole.value, rel=1e-6)


def test_a_model_that_knows_nothing_has_as_much_perplexity_as_tokens(
    make_model: Callable[[str], Any],
) -> None:
    model = make_model("llama-untied")
    torch.nn.init.zeros_(model.lm_head.weight)
    assert perplexity(model, running(30), context=8, stride=4).value == pytest.approx(101)


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 100])
@pytest.mark.parametrize(("room", "stride"), [(8, 4), (8, 7), (8, 8), (8, 1), (2, 1)])
def test_windows_meet_each_token_as_a_new_one_exactly_once(
    count: int, room: int, stride: int
) -> None:
    new = []
    for begin, first, end in windows(count, room, stride):
        assert end - begin <= room
        # All but the first window show something before their first new token.
        assert begin < first or begin == first == 0
        new += range(first, end)
    assert new == list(range(count))


@pytest.mark.parametrize("settings", [{"stride": 9}, {"stride": 0}, {"context": 1, "stride": 1}])
def test_windows_that_leave_tokens_out_are_refused(
    make_model: Callable[[str], Any], settings: dict[str, int]
) -> None:
    with pytest.raises(ConfigError, match="stride"):
        perplexity(make_model("llama"), running(20), **{"context": 8, **settings})


def test_a_longer_context_than_the_model_takes_is_refused(
    make_model: Callable[[str], Any],
) -> None:
    with pytest.raises(ConfigError, match="1024 tokens at most"):
        perplexity(make_model("gpt2"), running(20), context=1025)


def test_the_first_tokens_of_a_file_are_read_with_its_empty_lines(
    tmp_path: Path, byte_tokenizer: Any
) -> None:
    content = " = Title = \n\nA line of text.\nAnother one, much longer than that.\n" * 40
    (tmp_path / "text.txt").write_text(content)
    (tmp_path / "text.txt.gz").write_bytes(gzip.compress(content.encode()))
    for name in ("text.txt", "text.txt.gz"):
        for tokens in (50, 1000, None):
            text = read_running(tmp_path / name, byte_tokenizer, tokens)
            assert bytes(text.ids.tolist()).decode() == content[:tokens]
            assert text.lead == ()


def test_texts_of_a_file_with_columns_are_joined_by_line_ends(
    tmp_path: Path, byte_tokenizer: Any
) -> None:
    (tmp_path / "texts.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    text = read_running(tmp_path / "texts.jsonl", byte_tokenizer)
    assert bytes(text.ids.tolist()).decode() == "one\ntwo\n"


def test_a_file_without_text_is_refused(tmp_path: Path, byte_tokenizer: Any) -> None:
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(DataError, match=r"empty\.txt"):
        read_running(tmp_path / "empty.txt", byte_tokenizer)


def test_what_begins_every_text_is_found(word_tokenizer: Any, byte_tokenizer: Any) -> None:
    assert lead_of(word_tokenizer) == (2,)
    assert lead_of(byte_tokenizer) == ()


@pytest.fixture(scope="module")
def byte_tokenizer() -> Any:
    """A tokenizer whose tokens are the bytes of ASCII text."""
    import tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {chr(number): number for number in range(128)}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="?"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"[\s\S]"), "isolated")
    return PreTrainedTokenizerFast(tokenizer_object=inner)
