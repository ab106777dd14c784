"""What all tasks on texts share: runs go on where they were stopped, codes are watched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from smalti.analysis import change_rate
from smalti.recipes.texts import LanguageModelConfig, Learned, train_language_model
from smalti.recipes.texts.language_model import LanguageModel, LanguageTask
from smalti.recipes.texts.table_task import start_table
from smalti.training import TrainingSettings, read_journal

Sentences = Callable[[int, int], list[str]]
Training = Callable[..., TrainingSettings]
SPEC = {
    "compressor": "differentiable",
    "choice": "centroid",
    "num_codebooks": 2,
    "codebook_size": 4,
    "distance_norm": "none",
}


class InterruptedRunError(Exception):
    """Stands for a killed process."""


@pytest.fixture
def run(sentences: Sentences, training: Training) -> Callable[..., Learned]:
    """Trains a small model for 23 steps: three epochs of 8 windows, but for the last."""
    texts = {"train": sentences(36, 0), "valid": sentences(10, 1), "test": sentences(10, 2)}
    settings = training(epochs=None, steps=23, evaluate_every=6, checkpoint_every=5)
    config = LanguageModelConfig(
        embedding=SPEC, dim=4, hidden=6, dropout=0.2, window=10, training=settings
    )

    def train(place: Path | None = None, resume: bool = False) -> Learned:
        return train_language_model(config, place, resume, texts=texts)

    return train


def stop_after(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the task fail in a later step, as if the process had been killed."""
    whole, made = LanguageTask.loss, []

    def loss(task: LanguageTask, batch: object) -> Tensor:
        if len(made) == steps:
            raise InterruptedRunError
        made.append(batch)
        return whole(task, batch)  # type: ignore[arg-type]

    monkeypatch.setattr(LanguageTask, "loss", loss)


def test_an_interrupted_run_goes_on_to_the_same_bits(
    run: Callable[..., Learned], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run()
    with monkeypatch.context() as patch:
        stop_after(13, patch)
        with pytest.raises(InterruptedRunError):
            run(tmp_path / "run")
    # From the checkpoint of step 10, in the middle of an epoch: the LSTM's state is needed.
    resumed = run(tmp_path / "run", resume=True)
    for (name, one), (_, other) in zip(
        whole.model.state_dict().items(), resumed.model.state_dict().items(), strict=True
    ):
        assert torch.equal(one, other), name
    assert [step for step, _ in whole.codes] == [step for step, _ in resumed.codes]
    for (_, one), (_, other) in zip(whole.codes, resumed.codes, strict=True):
        assert torch.equal(one, other)


def test_codes_are_kept_at_every_evaluation_and_at_the_end(
    run: Callable[..., Learned], tmp_path: Path
) -> None:
    learned = run(tmp_path)
    assert [step for step, _ in learned.codes] == [6, 12, 18, 23]
    # The last are those of the table that would be shipped.
    table = learned.model.get_submodule("embedding")
    assert torch.equal(learned.codes[-1][1].long(), table.take_codes(torch.arange(table.rows)))
    told = [line["metrics"] for line in read_journal(tmp_path) if line["kind"] == "evaluate"]
    rates = change_rate({"run": learned.codes}).numbers["runs"]["run"]
    assert [one["codes_changed"] for one in told[1:]] == [one["codes_changed"] for one in rates]


def test_watching_codes_changes_nothing(sentences: Sentences, training: Training) -> None:
    texts = {"train": sentences(20, 0), "valid": sentences(10, 1), "test": sentences(10, 2)}
    models = []
    for every in (None, 2):
        settings = training(epochs=None, steps=6, evaluate_every=every)
        config = LanguageModelConfig(embedding=SPEC, dim=4, hidden=6, window=10, training=settings)
        models.append(train_language_model(config, texts=texts).model.state_dict())
    assert all(torch.equal(tensor, models[1][name]) for name, tensor in models[0].items())


def test_the_tables_own_loss_is_learned_too(training: Training) -> None:
    config = LanguageModelConfig(embedding=SPEC, dim=4, hidden=6, training=training())
    torch.manual_seed(0)
    model = LanguageModel(start_table(config, 20), 20, config)
    ids = torch.arange(20).repeat(10)
    task = LanguageTask(model, config, [str(word) for word in range(20)], {"train": ids})
    window = next(iter(task.batches(0, torch.Generator())))
    loss, told = task.step(window)
    table = model.embedding
    # By hand: what centroids are to minimise is added to the task's loss.
    torch.testing.assert_close(loss, told["task_loss"] + table.loss)
    loss.backward()
    assert float(table.quantizer.keys.grad.abs().sum()) > 0
