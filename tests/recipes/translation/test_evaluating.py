"""Evaluation: scores of real translations under the names of how they were made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smalti.data import AlignedTexts, padded, read_aligned
from smalti.errors import DataError
from smalti.recipes.translation import evaluate_translation_run, score, translate_texts
from smalti.recipes.translation.latency import latencies
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
    full = len(run.subwords) * 32 * 4
    assert found.tables == {"shared": (full, full)}


def test_the_clean_up_of_repeats_is_never_the_plain_row(run: Any, pairs: AlignedTexts) -> None:
    options = replace(run.decoding, clean_repeats=True)
    found = evaluate_translation_run(run, pairs, options, timed=0)
    assert list(found.scores) == ["greedy", "beam_2", "without_repeats"]
    assert found.latency == {}


def test_no_sentences_are_refused(run: Any) -> None:
    with pytest.raises(DataError, match="at least one"):
        evaluate_translation_run(run, AlignedTexts((), (), ("a", "b")))


def test_latents_of_references_and_of_others_are_bounds_and_no_translations(
    latent: Any, pairs: AlignedTexts
) -> None:
    found = evaluate_translation_run(latent, pairs, timed=2)
    assert list(found.scores) == ["predicted_latents"]
    assert list(found.bounds) == ["teacher_forced_latents", "shuffled_latents"]
    tokens = [latent.subwords.encode(texts) for texts in (pairs.source, pairs.target)]
    made = latent.translator.reconstruct(*map(padded, tokens))
    expected = score(latent.subwords.decode(made), pairs.target)
    assert found.bounds["teacher_forced_latents"].bleu == pytest.approx(expected.bleu)
    # Every token of a reference belongs to one of its latents: as many codes as fours of tokens.
    codes = latent.translator.latents_of(*map(padded, tokens))
    used = {int(code) for code in codes.codes[codes.mask].reshape(-1)}
    assert found.codes is not None
    assert found.codes["codebooks"][0]["in_use"] == len(used)
    assert found.codes["codebooks"][0]["size"] == 16


def test_rescored_samples_are_a_row_of_their_own(
    latent: Any, run: Any, pairs: AlignedTexts
) -> None:
    options = replace(latent.decoding, samples=3)
    found = evaluate_translation_run(latent, pairs, options, rescore_with=run, timed=0)
    assert list(found.scores) == ["predicted_latents", "3_samples_rescored"]


def test_another_model_is_scored_beside_it_and_timed_by_turns(
    latent: Any, run: Any, pairs: AlignedTexts
) -> None:
    found = evaluate_translation_run(latent, pairs, against=run, timed=2)
    assert list(found.scores) == ["predicted_latents", "against_greedy", "against_beam_2"]
    assert list(found.latency) == list(found.scores)
    alone = evaluate_translation_run(run, pairs, timed=0)
    assert found.scores["against_greedy"] == alone.scores["greedy"]


def test_long_texts_are_timed_apart_where_there_are_any(run: Any, pairs: AlignedTexts) -> None:
    words = sum(len(text.split()) for text in pairs.source)
    times = latencies({"greedy": (run, Decoding())}, pairs.source, 2)["greedy"].long_milliseconds
    assert (40 in times) == (words >= 40)
    assert 20 not in times
    long = [" ".join(["ba"] * 20)]
    assert set(latencies({"greedy": (run, Decoding())}, long, 2)["greedy"].long_milliseconds) == {
        20
    }
