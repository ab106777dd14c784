"""One pass over the text: counts, and texts that are held out fairly."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from smalti.data import TokenCounts, count_tokens
from smalti.errors import ConfigError, DataError
from smalti.hub.choosing.survey import FEW, JUDGING, Sample, survey

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

# Texts of which each has a word of its own, and one that all share.
TEXTS = [f"all own{number}" for number in range(FEW + 500)]


@pytest.fixture(scope="module")
def own_words() -> Any:
    """A tokenizer that knows the words of those texts: ids 0 and 1 are special, 2 is shared."""
    words = ["[PAD]", "[UNK]", "all", *(f"own{number}" for number in range(len(TEXTS)))]
    vocabulary = {word: number for number, word in enumerate(words)}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="[PAD]", unk_token="[UNK]"
    )


@pytest.fixture
def own_file(tmp_path: Path) -> Path:
    path = tmp_path / "own.txt"
    path.write_text("\n".join(TEXTS))
    return path


def own_ids(texts: list[str]) -> list[int]:
    return [3 + int(text.removeprefix("all own")) for text in texts]


def test_every_text_of_a_stream_has_the_same_chance() -> None:
    stream = [str(number) for number in range(200)]
    drawn: Counter[int] = Counter()
    first: Counter[int] = Counter()
    for seed in range(500):
        sample = Sample(20, seed)
        assert list(sample.passing(stream)) == stream
        assert len(set(sample.texts)) == 20
        drawn.update(int(text) // 20 for text in sample.texts)
        first.update(int(text) // 20 for text in sample.texts[:5])
    # A tenth of the stream: 1000 of 10000 draws are expected (deviation at most 30), and of
    # the first five of each sample 250 of 2500 (deviation at most 15). Five deviations.
    assert all(abs(drawn[part] - 1000) < 150 for part in range(10))
    assert all(abs(first[part] - 250) < 75 for part in range(10))


def test_a_short_stream_is_the_sample_in_random_order() -> None:
    stream = [str(number) for number in range(50)]
    sample = Sample(100, seed=1)
    assert list(sample.passing(stream)) == stream
    assert sorted(sample.texts) == sorted(stream)
    assert sample.texts != stream


def test_the_seed_chooses_the_texts(own_words: Any, own_file: Path) -> None:
    rows = len(own_words)
    one, same, other = (
        survey(own_words, rows, [own_file], seed=seed, progress=False) for seed in (0, 0, 1)
    )
    assert one.judging == same.judging
    assert one.teaching == same.teaching
    assert set(one.judging) != set(other.judging)


def test_choosing_does_not_know_the_words_of_texts_that_judge(
    own_words: Any, own_file: Path
) -> None:
    known = survey(own_words, len(own_words), [own_file], progress=False)
    assert len(known.judging) == JUDGING
    assert sorted(known.judging + known.teaching) == sorted(TEXTS)
    assert known.counts.counts[own_ids(TEXTS)].eq(1).all()
    assert known.choosing[own_ids(known.judging)].eq(0).all()
    assert known.choosing[own_ids(known.teaching)].eq(1).all()
    assert int(known.choosing[2]) == len(TEXTS) - JUDGING
    assert known.counts.tokens == 2 * len(TEXTS)


def test_a_text_that_is_there_twice_is_held_out_twice(own_words: Any, tmp_path: Path) -> None:
    path = tmp_path / "twice.txt"
    path.write_text("\n".join(TEXTS + TEXTS))
    known = survey(own_words, len(own_words), [path], progress=False)
    assert len(set(known.judging)) == JUDGING
    assert not set(known.judging) & set(known.teaching)
    assert known.choosing[own_ids(known.judging)].eq(0).all()
    assert known.choosing[own_ids(known.teaching)].eq(2).all()


def test_with_few_texts_nothing_is_held_out_and_a_note_says_so(
    own_words: Any, tmp_path: Path
) -> None:
    path = tmp_path / "few.txt"
    path.write_text("\n".join(TEXTS[:10]))
    known = survey(own_words, len(own_words), path, progress=False)
    assert set(known.judging) == set(known.teaching) == set(TEXTS[:10])
    assert torch.equal(known.choosing, known.counts.counts.double())
    assert any("only 10 texts" in note for note in known.notes)


def test_several_files_are_one_text(own_words: Any, tmp_path: Path) -> None:
    for name, part in (("a.txt", TEXTS[:3]), ("b.txt", TEXTS[3:7])):
        (tmp_path / name).write_text("\n".join(part))
    known = survey(
        own_words, len(own_words), [tmp_path / "a.txt", tmp_path / "b.txt"], progress=False
    )
    assert known.counts.texts == 7
    assert len(known.counts.sources) == 2


def test_given_counts_take_the_place_of_the_texts(
    own_words: Any, own_file: Path, tmp_path: Path
) -> None:
    counts = count_tokens(["all own5 own5"], own_words, len(own_words))
    counts.save(tmp_path / "counts.json")
    for given in (counts, tmp_path / "counts.json"):
        known = survey(own_words, len(own_words), [own_file], counts=given, progress=False)
        assert known.choosing[[2, 8]].tolist() == [1, 2]
        assert int(known.choosing.sum()) == 3
        assert set(known.judging) <= set(TEXTS)


def test_counts_alone_give_made_up_texts_of_their_words(own_words: Any) -> None:
    counts = count_tokens(["all own5 own5"], own_words, len(own_words))
    known = survey(own_words, len(own_words), counts=counts, progress=False)
    words = Counter(word for text in known.judging for word in text.split())
    assert set(words) == {"all", "own5"}
    # 8192 draws, two thirds of them own5: 5461, deviation 43.
    assert abs(words["own5"] - 5461) < 215
    assert known.teaching == []
    assert "no text was given" in known.notes[0]
    assert "the counts given" in known.notes[0]


@pytest.mark.slow
def test_without_text_and_counts_general_frequencies_are_used_and_named(
    trained_tokenizer: Any,
) -> None:
    pytest.importorskip("wordfreq")
    known = survey(trained_tokenizer, 400, progress=False)
    assert "no text was given" in known.notes[0]
    assert "wordfreq" in known.notes[0]
    assert known.counts.tokens > 0
    assert known.judging


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        (torch.zeros(10, dtype=torch.int64), "all zero"),
        (torch.tensor([5, 3] + [0] * 8), "special tokens only"),
    ],
)
def test_counts_that_can_not_be_used_are_refused(
    own_words: Any, counts: torch.Tensor, words: str
) -> None:
    print_of = count_tokens(["all"], own_words, 3000).tokenizer
    with pytest.raises(DataError, match=words):
        survey(own_words, 3000, counts=TokenCounts(counts, 1, (), print_of), progress=False)


def test_counts_of_another_tokenizer_are_refused(own_words: Any, word_tokenizer: Any) -> None:
    counts = count_tokens(["w5 w6"], word_tokenizer, 101)
    with pytest.raises(DataError, match="another model's tokenizer"):
        survey(own_words, 3000, counts=counts, progress=False)


def test_texts_with_tokens_beyond_the_table_are_refused(own_words: Any, own_file: Path) -> None:
    with pytest.raises(DataError, match="another model's tokenizer"):
        survey(own_words, 100, [own_file], progress=False)


def test_a_model_without_a_tokenizer_is_refused(own_file: Path) -> None:
    with pytest.raises(ConfigError, match="no tokenizer"):
        survey(None, 100, [own_file])
