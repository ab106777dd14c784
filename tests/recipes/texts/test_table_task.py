"""The loop of the small recipes: what it learns, and that it can be interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from smalti.embeddings.differentiable import Differentiable
from smalti.recipes.loop import Watch, learn

STEPS = 5


class InterruptedRunError(Exception):
    """Stands for a killed process."""


def run(
    checkpoint: Path | None, stop_after: int | None = None, watch: Watch | None = None
) -> dict[str, Tensor]:
    torch.manual_seed(0)
    table = Differentiable("centroid", 2, 4).start(20, 4)
    model = nn.Sequential(table, nn.Dropout(0.2), nn.Linear(4, 1))
    begun = 0

    def epoch_of() -> Iterator[Tensor]:
        nonlocal begun
        if begun == stop_after:
            raise InterruptedRunError
        begun += 1
        return iter([torch.randint(20, (8,)) for _ in range(STEPS)])

    def loss_of(ids: Tensor) -> Tensor:
        return (model(ids)[:, 0] - ids.float() / 20).square().mean()

    learn(
        model,
        epoch_of,
        loss_of,
        epochs=4,
        steps=STEPS,
        learning_rate=0.01,
        checkpoint=checkpoint,
        watch=watch,
    )
    return model.state_dict()


def test_an_interrupted_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole = run(None)
    file = tmp_path / "deep" / "run.pt"
    with pytest.raises(InterruptedRunError):
        run(file, stop_after=2)
    resumed = run(file)
    assert whole.keys() == resumed.keys()
    for name, tensor in whole.items():
        assert torch.equal(tensor, resumed[name]), name
    assert [path.name for path in file.parent.iterdir()] == ["run.pt"]


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    file = tmp_path / "run.pt"
    first = run(file)
    again = run(file, stop_after=0)
    assert all(torch.equal(tensor, again[name]) for name, tensor in first.items())


def test_the_tables_own_loss_is_learned_too() -> None:
    torch.manual_seed(0)
    table = Differentiable("centroid", 2, 4).start(20, 4)
    before = table.quantizer.keys.detach().clone()
    # The task says nothing of centroids: only the table's own loss moves them.
    learn(
        table,
        lambda: [torch.arange(20)],
        lambda ids: table(ids).sum() * 0,
        epochs=3,
        steps=1,
        learning_rate=0.01,
    )
    assert not torch.equal(table.quantizer.keys.detach(), before)


def test_a_watcher_sees_every_epoch_and_changes_nothing() -> None:
    whole = run(None)
    seen: list[tuple[int, bool]] = []
    watched = run(None, watch=lambda epoch, model: seen.append((epoch, model.training)))
    assert seen == [(1, False), (2, False), (3, False), (4, False)]
    for name, tensor in whole.items():
        assert torch.equal(tensor, watched[name]), name
