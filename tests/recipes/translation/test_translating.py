"""Texts in, texts out: order, blanks, long lines, foreign scripts."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from smalti.data import padded
from smalti.errors import ConfigError
from smalti.recipes.translation import translate_texts
from smalti.translation import Decoding

from .conftest import made_up_pairs


def test_lines_keep_their_order_and_blank_ones_stay_blank(run: Any) -> None:
    texts = made_up_pairs(60, seed=9)[0]
    texts[7], texts[20] = "", "   "
    found = translate_texts(run, texts, batch_tokens=100)
    assert len(found.texts) == 60
    assert found.texts[7] == found.texts[20] == ""
    for row in (0, 8, 59):
        ids = padded(run.subwords.encode([texts[row]]))
        alone = run.translator.translate(ids, run.decoding)
        assert found.texts[row] == run.subwords.decode(alone)[0]


@pytest.mark.parametrize("beam", [1, 3])
def test_the_size_of_batches_does_not_matter(run: Any, beam: int) -> None:
    texts = made_up_pairs(40, seed=10)[0]
    options = Decoding(beam=beam)
    one, other = (
        translate_texts(run, texts, options, batch_tokens=tokens).texts for tokens in (1, 2000)
    )
    assert one == other


def test_a_trained_model_writes_words_of_the_other_language(run: Any) -> None:
    sources, targets = made_up_pairs(30, seed=11)
    known = {word for text in targets for word in text.split()}
    written = [word for text in translate_texts(run, sources).texts for word in text.split()]
    assert sum(word in known for word in written) > 0.5 * len(written) > 0


def test_long_lines_and_foreign_scripts_come_back_as_one_line_each(run: Any) -> None:
    texts = [
        "ba de " * 5000,
        "今日は" * 50,
        "مرحبا 🙂 \u2028 x",
        "ko\tgi\x1cba",
        "x" * 3000,
        "<eos> <pad>",
    ]
    found = translate_texts(run, texts, Decoding(max_ratio=1.0, max_extra=1))
    assert len(found.texts) == len(texts)
    assert all(len(text.splitlines()) <= 1 for text in found.texts)
    assert set(found.split) >= {1, 2, 5}
    assert 4 not in found.split


def test_nothing_is_translated_to_nothing(run: Any) -> None:
    assert translate_texts(run, []).texts == ()


def test_who_rescores_must_have_the_same_vocabulary(run: Any) -> None:
    from dataclasses import replace

    from smalti.data import Subwords

    other = replace(run, subwords=Subwords.fit(["other words"], 262))
    with pytest.raises(ConfigError, match="same vocabulary"):
        translate_texts(run, ["ba"], rescore_with=other)


def test_autocast_around_it_changes_nothing(run: Any) -> None:
    texts = made_up_pairs(10, seed=12)[0]
    plain = translate_texts(run, texts).texts
    with torch.autocast("cpu", torch.bfloat16):
        assert translate_texts(run, texts).texts == plain
