"""Encoders learn a labelled set; a stopped fine-tuning ends as one that was not."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from smalti.data import Labelled
from smalti.hub.batching import batches
from smalti.hub.classification import head_figures
from smalti.hub.fine_tuning import FineTuning, fine_tune
from smalti.hub.small_models import small_encoder, small_tokenizer
from smalti.training import TrainingSettings

pytest.importorskip("accelerate")
SETTINGS = {
    "batch_size": 16,
    "learning_rate": 3e-3,
    "epochs": 4,
    "checkpoint_every": 3,
    "tensorboard": False,
}


@pytest.fixture
def base(tmp_path: Path, word_tokenizer: Any, make_model: Callable[[str], Any]) -> Path:
    """A random encoder of 101 words."""
    place = tmp_path / "base"
    make_model("bert-encoder").save_pretrained(place)
    word_tokenizer.save_pretrained(place)
    return place


def examples(amount: int, *, scored: bool = False) -> Labelled:
    """Texts of words with low or with high numbers; the label says which, or how many."""
    chance = random.Random(4)
    high = [chance.randrange(9) for _ in range(amount)]
    texts = []
    for many in high:
        words = [chance.randint(60, 99) for _ in range(many)]
        words += [chance.randint(5, 50) for _ in range(8 - many)]
        chance.shuffle(words)
        texts.append(" ".join(f"w{word}" for word in words))
    if scored:
        return Labelled(texts, None, torch.tensor(high).float(), (), "made up")
    labels = (torch.tensor(high) > 4).long()
    return Labelled(texts, None, labels, ("few", "many"), "made up")


@pytest.mark.parametrize(
    ("scored", "figure", "least"), [(False, "accuracy", 80), (True, "spearman", 80)]
)
def test_a_new_head_learns_classes_and_scores(
    scored: bool, figure: str, least: float, base: Path, tmp_path: Path
) -> None:
    known = examples(300, scored=scored)
    opened = fine_tune(base, known, TrainingSettings(**SETTINGS), tmp_path / "tuned")
    assert opened.kind == "classifier"
    assert opened.model.config.num_labels == (1 if scored else 2)
    made = batches(opened.tokenizer, known.first)
    found = head_figures(opened.model, made, known)[figure]
    assert found is not None
    assert found > least


def test_a_stopped_fine_tuning_goes_on_and_ends_with_the_same_bits(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, settings = examples(60), TrainingSettings(**{**SETTINGS, "epochs": 2})
    whole = fine_tune(base, known, settings, tmp_path / "whole").model.state_dict()
    with monkeypatch.context() as changed:
        steps = 0
        step = FineTuning.step

        def failing(self: FineTuning, batch: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps == 6:
                raise RuntimeError("the power went out")
            return step(self, batch)

        changed.setattr(FineTuning, "step", failing)
        with pytest.raises(RuntimeError, match="power"):
            fine_tune(base, known, settings, tmp_path / "stopped")
    resumed = fine_tune(base, known, settings, tmp_path / "stopped").model.state_dict()
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    # Checkpoints, which are three times as large as the model, are gone.
    assert [path.name for path in (tmp_path / "stopped").iterdir()] == ["model"]


def test_what_is_fine_tuned_already_is_opened(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, settings = examples(20), TrainingSettings(**{**SETTINGS, "epochs": 1})
    first = fine_tune(base, known, settings, tmp_path / "tuned").model.state_dict()
    monkeypatch.setattr("smalti.hub.fine_tuning.train", None)
    again = fine_tune(base, known, settings, tmp_path / "tuned").model.state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)


def test_batches_hold_all_examples_once_and_texts_of_like_length(base: Path) -> None:
    from smalti.hub import open_model

    texts = [" ".join(["w7"] * (1 + n % 20)) for n in range(80)]
    known = Labelled(texts, None, torch.arange(80), tuple(map(str, range(80))), "made up")
    opened = open_model(base, kind="classifier", num_labels=80)
    task = FineTuning(opened, known, TrainingSettings(**SETTINGS), longest=12)
    made = list(task.batches(0, torch.Generator().manual_seed(1)))
    assert sorted(label for batch in made for label in batch["labels"].tolist()) == list(range(80))
    lengths = [batch["inputs"]["attention_mask"].sum(1) for batch in made]
    # Cut to 12 tokens, and little padding: no batch has both the shortest and the longest.
    assert max(int(each.max()) for each in lengths) == 12
    assert not any(int(each.min()) == 3 and int(each.max()) == 12 for each in lengths)


def test_small_models_have_the_vocabulary_of_their_texts() -> None:
    tokenizer = small_tokenizer(["the cat sat", "the dog sat on the cat"], rows=60)
    assert tokenizer.convert_ids_to_tokens(tokenizer("The cat")["input_ids"]) == [
        "[CLS]",
        "the",
        "cat",
        "[SEP]",
    ]
    assert tokenizer("the", "dog")["token_type_ids"] == [0, 0, 0, 1, 1]
    model = small_encoder(60, 8, 2, seed=1)
    assert model.get_input_embeddings().weight.shape == (60, 8)
    assert model.config.num_hidden_layers == 2
