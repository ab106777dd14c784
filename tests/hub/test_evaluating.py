"""Whole evaluations."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import smalti
from smalti.data import Labelled
from smalti.errors import ArtifactError, ConfigError, DataError
from smalti.hub import Opened
from smalti.hub.evaluating import evaluate

TEXTS = [f"w{5 + number} w{50 + number} w{99 - number}" for number in range(30)]
SCORED = Labelled(TEXTS[:9], TEXTS[9:18], torch.arange(9.0), (), "scored pairs")
SINGLE = Labelled(TEXTS[:9], None, torch.arange(9.0), (), "scored texts")
CLASSED = Labelled(TEXTS[:9], None, torch.arange(9) % 2, ("0", "1"), "classes")


@pytest.fixture
def opened(
    make_model: Callable[[str], Any], make_table: Callable[..., Any], word_tokenizer: Any
) -> Callable[..., Opened]:
    """Opens a tiny model, with a compressed table or without."""

    def make(name: str, kind: str, compressed: bool = False, **settings: Any) -> Opened:
        model = make_model(name)
        for key, value in settings.items():
            setattr(model.config, key, value)
        if compressed:
            smalti.replace_table(model, make_table())
        # A file as its place, so that nobody asks the Hub about it.
        return Opened(model, word_tokenizer, kind, Path(__file__), name)

    return make


def test_without_data_there_are_only_sizes(opened: Callable[..., Opened]) -> None:
    found = evaluate(opened("bert-encoder", "encoder"))
    assert found.model.table["total"] == 101 * 32 * 4
    assert (found.against, found.fidelity, found.tasks, found.speed) == (None, {}, [], {})


@pytest.mark.parametrize(
    ("name", "kind", "figures"),
    [
        ("bert-encoder", "encoder", {"mean_cosine": 1, "same_neighbours": 1}),
        ("bert-classifier", "classifier", {"mean_cosine": 1, "same_class": 1}),
        ("t5", "seq2seq", {"mean_cosine": 1, "same_neighbours": 1}),
        ("bert", "masked", {"mean_cosine": 1, "same_token": 1, "divergence": 0}),
        ("llama", "causal", {"mean_cosine": 1, "same_token": 1, "divergence": 0}),
    ],
)
def test_a_model_is_faithful_to_itself_and_less_so_with_a_random_table(
    opened: Callable[..., Opened], name: str, kind: str, figures: dict[str, float]
) -> None:
    original = opened(name, kind)
    found = evaluate(original, original, texts=TEXTS).fidelity
    assert found["texts"] == 30
    for figure, value in figures.items():
        assert found[figure] == pytest.approx(value, abs=1e-6)
    other = evaluate(opened(name, kind, compressed=True), original, texts=TEXTS).fidelity
    assert other["mean_cosine"] < 0.999


def test_both_models_are_measured_on_the_same_labels(opened: Callable[..., Opened]) -> None:
    original, small = opened("bert-encoder", "encoder"), opened("bert-encoder", "encoder", True)
    (task,) = evaluate(small, original, labelled=[SCORED]).tasks
    assert (task.task, task.source, task.examples) == ("similarity", "scored pairs", 9)
    assert task.settings == {"pooling": "mean"}
    (alone,) = evaluate(original, labelled=[SCORED]).tasks
    assert alone.figures == pytest.approx(task.against)
    assert alone.against is None
    assert task.figures != pytest.approx(task.against)


def test_the_data_decides_what_a_classifier_is_asked(opened: Callable[..., Opened]) -> None:
    classifier = opened("bert-classifier", "classifier")
    tasks = evaluate(classifier, labelled=[CLASSED, SCORED]).tasks
    assert [task.task for task in tasks] == ["classification", "similarity"]
    assert set(tasks[0].figures) == {"accuracy", "f1", "matthews"}


def test_a_head_with_one_output_predicts_scores(opened: Callable[..., Opened]) -> None:
    regression = opened("bert-classifier", "classifier", num_labels=1)
    tasks = evaluate(regression, labelled=[SCORED, SINGLE]).tasks
    assert [task.task for task in tasks] == ["regression", "regression"]


def test_a_causal_model_predicts_a_text(tmp_path: Path, opened: Callable[..., Opened]) -> None:
    (tmp_path / "text.txt").write_text("\n".join(TEXTS))
    original, small = opened("llama", "causal"), opened("llama", "causal", compressed=True)
    (task,) = evaluate(
        small, original, running=tmp_path / "text.txt", tokens=50, context=16, stride=8
    ).tasks
    assert (task.task, task.examples) == ("perplexity", 50)  # [CLS] leads, so all are predicted
    assert task.settings == {"context": 16, "stride": 8}
    assert task.figures["perplexity"] > 1
    assert task.against is not None


def test_an_evaluation_is_plain_data(opened: Callable[..., Opened]) -> None:
    original, small = opened("bert-encoder", "encoder"), opened("bert-encoder", "encoder", True)
    found = evaluate(small, original, texts=TEXTS, labelled=[SCORED], speed=True).as_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["speed"]["ratio"] > 0
    assert found["model"]["table"]["total"] < found["against"]["table"]["total"]


@pytest.mark.parametrize(
    ("name", "kind", "settings", "error", "words"),
    [
        ("bert-encoder", "encoder", {"texts": TEXTS}, ConfigError, "against"),
        ("bert-encoder", "encoder", {"speed": True}, ConfigError, "against"),
        ("bert-encoder", "encoder", {"labelled": [CLASSED]}, ConfigError, "need a classifier"),
        ("bert-encoder", "encoder", {"labelled": [SINGLE]}, DataError, "scored pairs"),
        ("bert-encoder", "encoder", {"running": "x.txt"}, ConfigError, "causal"),
        ("llama", "causal", {"running": "/nowhere/x.txt"}, DataError, "no file"),
    ],
)
def test_what_can_not_be_measured_is_refused(
    opened: Callable[..., Opened],
    name: str,
    kind: str,
    settings: dict[str, Any],
    error: type[Exception],
    words: str,
) -> None:
    with pytest.raises(error, match=words):
        evaluate(opened(name, kind), **settings)


def test_models_that_can_not_be_compared_are_refused(
    opened: Callable[..., Opened], opened_minilm: Any
) -> None:
    encoder = opened("bert-encoder", "encoder")
    with pytest.raises(ConfigError, match="one kind"):
        evaluate(encoder, opened("llama", "causal"), texts=TEXTS)
    with pytest.raises(DataError, match="different tokenizers"):
        evaluate(encoder, opened_minilm, texts=TEXTS)


def test_a_saved_model_is_checked_and_measured_as_the_one_in_memory(
    tmp_path: Path, opened: Callable[..., Opened]
) -> None:
    small = opened("bert-encoder", "encoder", compressed=True)
    place = smalti.save_model(small.model, small.tokenizer, tmp_path / "small")
    (expected,) = evaluate(small, labelled=[SCORED]).tasks
    found = evaluate(place, labelled=[SCORED])
    assert found.tasks[0].figures == pytest.approx(expected.figures)
    files = [file for file in place.rglob("*") if file.is_file()]
    assert found.model.disk == sum(len(file.read_bytes()) for file in files)

    weights = place / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(ArtifactError, match="damaged"):
        evaluate(place, labelled=[SCORED])
