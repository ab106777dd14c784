"""What a table does to its model, against calculations of our own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from scipy.stats import spearmanr
from torch.nn import functional

from smalti.data import Labelled
from smalti.embeddings import CompressedEmbedding, build_compressor
from smalti.errors import DataError
from smalti.hub.choosing.judging import Judge, Verdict, in_place
from smalti.hub.opening import Opened, open_model

pytest.importorskip("transformers")


@pytest.fixture
def opened(small_model: Callable[[str], Path]) -> Opened:
    return open_model(small_model("encoder"))


def coarse(opened: Opened) -> CompressedEmbedding:
    return build_compressor("integer", bits=2).fit(opened.model.get_input_embeddings().weight)


def mean_vectors(opened: Opened, texts: list[str], dense: torch.Tensor) -> torch.Tensor:
    """Mean-pooled sentence vectors, a text at a time, so that there is no padding."""
    vectors = []
    table = opened.model.get_input_embeddings().weight.data
    before = table.clone()
    table.copy_(dense)
    for text in texts:
        inputs = opened.tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            vectors.append(opened.model(**inputs).last_hidden_state[0].mean(dim=0))
    table.copy_(before)
    return functional.normalize(torch.stack(vectors), dim=-1)


def test_the_drop_is_percent_of_the_score_or_else_of_the_cosine() -> None:
    # By hand: 100 * (1 - 0.97), and 100 * (84 - 80) / 84.
    assert Verdict(0.97).drop == pytest.approx(3)
    assert Verdict(0.97, score=80.0, original=84.0).drop == pytest.approx(4.7619, abs=1e-4)
    assert Verdict(0.97, score=90.0, original=84.0).drop < 0
    # An original that is at zero, or has no score, can't lose a share of it.
    assert Verdict(0.97, score=10.0, original=0.0).drop == pytest.approx(3)
    # Where the original has a score and the table leaves none, all is lost.
    assert Verdict(0.97, score=None, original=84.0).drop == pytest.approx(100)


def test_the_models_own_numbers_lose_nothing(opened: Opened, sentences: list[str]) -> None:
    same = build_compressor("full").fit(opened.model.get_input_embeddings().weight)
    assert Judge(opened, sentences[:20])(same).cosine == pytest.approx(1, abs=1e-6)


def test_the_cosine_is_that_of_mean_pooled_sentence_vectors(
    opened: Opened, sentences: list[str]
) -> None:
    table, texts = coarse(opened), sentences[:20]
    original = mean_vectors(opened, texts, opened.model.get_input_embeddings().weight)
    changed = mean_vectors(opened, texts, table.dense())
    expected = float((original * changed).sum(dim=-1).mean())
    assert expected < 0.999
    assert Judge(opened, texts)(table).cosine == pytest.approx(expected, abs=1e-5)


def test_the_labelled_score_is_spearmans_correlation_times_100(
    opened: Opened, sentences: list[str]
) -> None:
    first, second = sentences[:30], sentences[30:60]
    scores = torch.linspace(0, 5, 30)
    table = coarse(opened)
    judge = Judge(opened, sentences[:5], Labelled(first, second, scores, (), "here"))
    verdict = judge(table)
    for dense, got in (
        (opened.model.get_input_embeddings().weight, verdict.original),
        (table.dense(), verdict.score),
    ):
        vectors = [mean_vectors(opened, side, dense) for side in (first, second)]
        cosines = (vectors[0] * vectors[1]).sum(dim=-1)
        assert got == pytest.approx(100 * spearmanr(cosines, scores).statistic, abs=0.5)


def test_the_labelled_score_of_a_classifier_is_its_accuracy(
    small_model: Callable[[str], Path], sentences: list[str]
) -> None:
    opened = open_model(small_model("classifier"))
    texts = sentences[:40]
    table = coarse(opened)

    def named(dense: torch.Tensor) -> torch.Tensor:
        with in_place(opened, dense), torch.no_grad():
            inputs = [opened.tokenizer(text, return_tensors="pt") for text in texts]
            return torch.cat([opened.model(**one).logits.argmax(dim=1) for one in inputs])

    before = named(opened.model.get_input_embeddings().weight.clone())
    after = named(table.dense())
    # The labels are what the original says, so that it has them all right.
    examples = Labelled(texts, None, before, ("0", "1", "2"), "here")
    verdict = Judge(opened, texts, examples)(table)
    assert verdict.original == 100
    assert verdict.score == pytest.approx(100 * float((before == after).double().mean()))


def test_labels_of_the_wrong_kind_are_refused_before_anything_is_tried(
    opened: Opened, sentences: list[str]
) -> None:
    classes = Labelled(sentences[:2], None, torch.tensor([0, 1]), ("0", "1"), "here")
    with pytest.raises(DataError, match="scored pairs"):
        Judge(opened, sentences[:5], classes)


def test_the_model_is_as_before_after_each_trial(opened: Opened, sentences: list[str]) -> None:
    before = {name: tensor.clone() for name, tensor in opened.model.state_dict().items()}
    judge = Judge(opened, sentences[:5])
    assert judge(coarse(opened)) == judge(coarse(opened))

    def interrupted() -> None:
        with in_place(opened, torch.zeros(400, 24)):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    for name, tensor in opened.model.state_dict().items():
        assert torch.equal(tensor, before[name]), name


@pytest.mark.parametrize("kind", ["causal", "gpt2", "masked", "t5", "marian"])
def test_a_tied_output_layer_changes_with_the_table(
    kind: str, small_model: Callable[[str], Path]
) -> None:
    opened: Any = open_model(small_model(kind))
    ids = torch.tensor([[2, 50, 60, 3]])
    inputs = {"input_ids": ids}
    if opened.kind == "seq2seq":
        inputs["decoder_input_ids"] = ids
    with torch.no_grad():
        before = opened.model(**inputs).logits
        with in_place(opened, torch.zeros(400, 24)):
            # Scores of a table of zeros are all the same, but for a bias.
            scores = opened.model(**inputs).logits
        after = opened.model(**inputs).logits
    assert float(scores.std(dim=-1).max()) < 1e-5 < float(before.std())
    assert torch.equal(before, after)


def test_a_head_of_one_output_is_judged_by_its_order(
    small_model: Callable[[str], Path], sentences: list[str]
) -> None:
    torch.manual_seed(2)
    opened = open_model(small_model("encoder"), kind="classifier", num_labels=1)
    scores = torch.arange(30).float()
    pairs = Labelled(sentences[:30], sentences[30:60], scores, (), "made up")
    table = coarse(opened)
    verdict = Judge(opened, sentences[:10], pairs)(table)
    with in_place(opened, table.dense()), torch.no_grad():
        outputs = [
            float(opened.model(**opened.tokenizer(*pair, return_tensors="pt")).logits)
            for pair in zip(pairs.first, pairs.second or (), strict=True)
        ]
    expected = 100 * spearmanr(outputs, scores.numpy()).statistic
    assert verdict.score == pytest.approx(expected, abs=1e-3)
