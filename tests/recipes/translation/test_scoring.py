"""Scores: hand-made cases, and what makes them comparable."""

from __future__ import annotations

import math

import pytest

from smalti.errors import ShapeError
from smalti.recipes.translation import score


def test_equal_texts_score_a_hundred_and_other_ones_nothing() -> None:
    texts = ["Ein Mann reitet ein Pferd.", "Zwei Frauen singen ein Lied."]
    same = score(texts, texts)
    assert same.bleu == pytest.approx(100)
    assert same.chrf == pytest.approx(100)
    assert same.length_ratio == 1
    other = score(["x y z w"], ["a b c d"])
    assert other.bleu < 1e-6


def test_bleu_is_what_paper_and_pencil_give() -> None:
    # 6 words against 8; all 6, 5, 4, 3 n-grams match, so only brevity counts.
    found = score(["a b c d e f"], ["a b c d e f g h"])
    assert found.bleu == pytest.approx(100 * math.exp(1 - 8 / 6))
    assert found.length_ratio == pytest.approx(6 / 8)


def test_signatures_name_the_settings_and_the_version() -> None:
    import sacrebleu

    found = score(["a b c d"], ["a b c d"])
    assert f"version:{sacrebleu.__version__}" in found.bleu_signature
    assert "tok:13a" in found.bleu_signature
    assert "nw:0" in found.chrf_signature


def test_each_reference_needs_a_translation() -> None:
    with pytest.raises(ShapeError, match="2 references"):
        score(["a"], ["a", "b"])
