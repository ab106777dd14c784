"""The loop in one process: what it learns, what it leaves alone, what it refuses."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from smalti.errors import ArtifactError, ConfigError, DataError, ShapeError
from smalti.training import Counted, TrainingSettings, read_journal, train

from .conftest import names


@pytest.fixture
def reconstruction(worker: Any) -> Any:
    """Makes the worker's task."""
    return worker.Reconstruction


def trained(task: Any, run: Path | None = None, resume: bool = False) -> dict[str, Tensor]:
    train(task, task.settings, run, resume)
    return {name: tensor.clone() for name, tensor in task.model.state_dict().items()}


def test_it_learns_what_a_loop_written_by_hand_learns(reconstruction: Any) -> None:
    settings = TrainingSettings(
        epochs=3, batch_size=90, learning_rate=0.05, clip_norm=1.0, schedule={"kind": "linear"}
    )  # type: ignore[arg-type]
    found = trained(reconstruction(settings))
    task = reconstruction(settings)
    optimizer = torch.optim.Adam(task.model.parameters(), lr=0.05)
    falling = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / 3)
    for _ in range(3):
        optimizer.zero_grad()
        # One batch holds all rows, so their order changes the last bits only.
        (task.decoder(task.encoder(task.rows)) - task.rows).square().mean().backward()
        nn.utils.clip_grad_norm_(task.model.parameters(), 1.0)
        optimizer.step()
        falling.step()
    for name, tensor in task.model.state_dict().items():
        torch.testing.assert_close(found[name], tensor, msg=name)


@pytest.mark.parametrize("batch_size", [20, 7])
def test_accumulated_pieces_are_the_large_batch(reconstruction: Any, batch_size: int) -> None:
    # Codebooks learn once a step; a start from data would see the first piece only.
    quantizer = {"start": "random", "dead": "keep"}
    plain = {"steps": 12, "batch_size": batch_size, "learning_rate": 0.01, "clip_norm": 2.0}
    whole = trained(reconstruction(TrainingSettings(**plain), quantizer=quantizer))
    settings = TrainingSettings(**plain, gradient_accumulation=4)
    pieces = trained(reconstruction(settings, quantizer=quantizer))
    for name, tensor in whole.items():
        torch.testing.assert_close(pieces[name], tensor, atol=1e-5, rtol=1e-5, msg=name)


def test_reports_change_nothing_and_leave_the_generators_alone(
    reconstruction: Any, tmp_path: Path
) -> None:
    quiet = TrainingSettings(steps=10, batch_size=20)
    loud = TrainingSettings(
        steps=10, batch_size=20, log_every=1, evaluate_every=2, picture_every=3, checkpoint_every=2
    )
    random.seed(5), np.random.seed(5), torch.manual_seed(5)
    expected = (random.random(), np.random.rand(), float(torch.rand(())))
    one = trained(reconstruction(quiet, noise=True))
    random.seed(6), np.random.seed(6)
    task = reconstruction(loud, noise=True)
    random.seed(5), np.random.seed(5), torch.manual_seed(5)
    other = trained(task, tmp_path)
    assert (random.random(), np.random.rand(), float(torch.rand(()))) == expected
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())
    kinds = [(line["kind"], line["step"]) for line in read_journal(tmp_path)]
    assert [step for kind, step in kinds if kind == "train"] == list(range(1, 11))
    assert [step for kind, step in kinds if kind == "evaluate"] == [2, 4, 6, 8, 10]
    assert [step for kind, step in kinds if kind == "picture"] == [3, 6, 9, 10]
    assert len(names(tmp_path / "pictures")) == 4


def test_the_outcome_and_the_journal_say_the_same(reconstruction: Any, tmp_path: Path) -> None:
    # 90 rows in batches of 25: four an epoch, and the last line is not a due one.
    settings = TrainingSettings(epochs=2, batch_size=25, log_every=5, evaluate_every=3)
    task = reconstruction(settings)
    outcome = train(task, settings, tmp_path)
    assert (outcome.finished, outcome.step, outcome.epoch) == (True, 8, 2)
    lines = read_journal(tmp_path)
    assert [line["step"] for line in lines if line["kind"] == "train"] == [5, 8]
    assert outcome.metrics == lines[-2]["metrics"]
    assert outcome.evaluation == lines[-1]["metrics"]
    error = (task.decoder(task.encoder(task.rows)) - task.rows).square().mean()
    assert outcome.evaluation["error"] == pytest.approx(error.item())
    assert outcome.checkpoint == (tmp_path / "checkpoints" / "step-00000008").resolve()
    assert lines[-2]["rows_per_second"] > 0


def test_a_line_has_the_mean_over_its_steps(worker: Any, tmp_path: Path) -> None:
    class Counting(worker.Reconstruction):  # type: ignore[misc, name-defined]
        def step(self, batch: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
            loss, _ = super().step(batch)
            return loss, {"rows": torch.tensor(float(len(batch))), "seen": torch.tensor(self.seen)}

    settings = TrainingSettings(steps=4, batch_size=60, log_every=2, gradient_accumulation=2)
    train(Counting(settings), settings, tmp_path)
    lines = read_journal(tmp_path)
    # Batches of 60 and 30 rows, in two pieces each; steps see pieces 1 to 4.
    assert [line["metrics"]["seen"] for line in lines] == [2.5, 6.5]
    assert [line["metrics"]["rows"] for line in lines] == [22.5, 22.5]


def test_a_finished_run_is_not_trained_again_but_may_go_further(
    reconstruction: Any, tmp_path: Path
) -> None:
    short = TrainingSettings(steps=6, batch_size=20, checkpoint_every=4)
    long = TrainingSettings(steps=11, batch_size=20, checkpoint_every=3, log_every=2)
    first = trained(reconstruction(short, noise=True), tmp_path)
    task = reconstruction(short, noise=True)
    assert all(
        torch.equal(first[name], tensor) for name, tensor in trained(task, tmp_path, True).items()
    )
    assert task.seen == 0
    task = reconstruction(long, noise=True)
    further = trained(task, tmp_path, resume=True)
    assert task.seen == 5
    whole = trained(reconstruction(long, noise=True))
    assert all(torch.equal(further[name], tensor) for name, tensor in whole.items())


@pytest.mark.parametrize(
    ("change", "config", "message"),
    [
        ({"seed": 1}, {}, "training.seed was 0 and is 1"),
        ({"batch_size": 10}, {}, "training.batch_size was 20 and is 10"),
        ({"schedule": "cosine"}, {}, "training.schedule.kind was 'constant' and is 'cosine'"),
        ({"precision": "bf16"}, {}, "training.precision was 'float32' and is 'bf16'"),
        ({}, {"model": {"dim": 5, "sizes": (1, 2)}}, "model.dim was 4 and is 5"),
        (
            {},
            {"model": {"dim": 4, "sizes": (1, 2), "depth": 1}},
            "model.depth was not given and is 1",
        ),
    ],
)
def test_a_changed_setting_is_refused_by_its_name(
    reconstruction: Any,
    tmp_path: Path,
    change: dict[str, Any],
    config: dict[str, Any],
    message: str,
) -> None:
    plain: dict[str, Any] = {"steps": 2, "batch_size": 20}
    made = {"model": {"dim": 4, "sizes": (1, 2)}, "training": plain}
    settings = TrainingSettings(**plain)
    train(reconstruction(settings), settings, tmp_path, config=made)
    settings = TrainingSettings(**{**plain, **change})
    with pytest.raises(ConfigError, match="can't resume") as caught:
        train(reconstruction(settings), settings, tmp_path, True, config={**made, **config})
    assert message in str(caught.value)
    assert str(caught.value).count(" was ") == 1


def test_a_run_that_has_checkpoints_is_not_overwritten(reconstruction: Any, tmp_path: Path) -> None:
    settings = TrainingSettings(steps=2)
    train(reconstruction(settings), settings, tmp_path)
    with pytest.raises(ConfigError, match="has a checkpoint of step 2; resume it"):
        train(reconstruction(settings), settings, tmp_path)


def test_a_damaged_checkpoint_stops_a_resume(reconstruction: Any, tmp_path: Path) -> None:
    settings = TrainingSettings(steps=2)
    outcome = train(reconstruction(settings), settings, tmp_path)
    assert outcome.checkpoint is not None
    file = outcome.checkpoint / "tensors.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ArtifactError, match=r"tensors.safetensors is damaged"):
        train(reconstruction(settings), settings, tmp_path, resume=True)


def test_bf16_computes_in_half_and_keeps_weights_whole(worker: Any) -> None:
    class Looking(worker.Reconstruction):  # type: ignore[misc, name-defined]
        def step(self, batch: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
            self.seen_type = self.encoder(batch).dtype
            return super().step(batch)  # type: ignore[no-any-return]

        def evaluate(self) -> dict[str, float]:
            return {"half": float(self.encoder(self.rows).dtype == torch.bfloat16)}

    settings = TrainingSettings(steps=30, precision="bf16", learning_rate=0.01, evaluate_every=30)
    task = Looking(settings, quantizer={})
    before = (task.decoder(task.encoder(task.rows)) - task.rows).square().mean().item()
    outcome = train(task, settings)
    assert task.seen_type == torch.bfloat16
    assert outcome.evaluation["half"] == 1.0
    assert {tensor.dtype for tensor in task.model.parameters()} == {torch.float32}
    assert outcome.metrics["error"] < before


def test_parts_that_are_in_evaluation_mode_stay_there(reconstruction: Any) -> None:
    settings = TrainingSettings(steps=4, evaluate_every=2)
    task = reconstruction(settings, quantizer={})
    task.quantizer.freeze()
    before = task.quantizer.codebook.clone()
    train(task, settings)
    assert task.encoder.training
    assert not task.quantizer.training
    assert torch.equal(task.quantizer.codebook, before)


class Carrying:
    """A task whose next loss depends on the last batch, as a recurrent model's does."""

    def __init__(self, count: int = 5) -> None:
        torch.manual_seed(0)
        self.settings = TrainingSettings(epochs=2, checkpoint_every=3)
        self.model = nn.Linear(3, 3)
        self.carried, self.count = torch.zeros(3), count

    def batches(self, epoch: int, generator: torch.Generator) -> Iterable[Tensor]:
        """Noise; an epoch begins with nothing carried."""
        del epoch
        self.carried = torch.zeros(3)
        stream = (torch.randn(4, 3, generator=generator) for _ in range(self.count))
        return Counted(stream, self.count)

    def step(self, batch: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """The error of what the last batch shifted."""
        out = self.model(batch + self.carried)
        self.carried = out.detach().mean(dim=0)
        return (out - batch).square().mean(), {}

    def optimizer(self) -> torch.optim.Optimizer:
        """With momentum, a state of the optimizer."""
        return torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)

    def evaluate(self) -> dict[str, float]:
        """Nothing."""
        return {}

    def picture(self) -> None:
        """None."""
        return

    def state_dict(self) -> dict[str, Any]:
        """What is carried."""
        return {"carried": self.carried}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Carry on."""
        self.carried = state["carried"]


def test_a_task_that_carries_state_goes_on_with_it(tmp_path: Path) -> None:
    whole = trained(Carrying())
    short = Carrying()
    train(short, TrainingSettings(steps=8, checkpoint_every=3), tmp_path)
    resumed = trained(Carrying(), tmp_path, resume=True)
    assert all(torch.equal(resumed[name], tensor) for name, tensor in whole.items())


def test_mistakes_of_a_task_are_said(reconstruction: Any, worker: Any) -> None:
    settings = TrainingSettings(steps=1)

    class Vector(worker.Reconstruction):  # type: ignore[misc, name-defined]
        def step(self, batch: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
            return self.encoder(batch).sum(dim=0), {}

    with pytest.raises(ShapeError, match=r"expected one loss, got shape \(6,\)"):
        train(Vector(settings), settings)
    with pytest.raises(DataError, match="epoch 0 has no batches"):
        train(Carrying(count=0), settings)
    with pytest.raises(DataError, match="the loss is nan in step 1"):
        train(reconstruction(settings, events={"nan": 1}), settings)
    with pytest.raises(ConfigError, match="nothing to resume"):
        train(reconstruction(settings), settings, None, resume=True)
    with pytest.raises(ConfigError, match="expected a config of JSON data"):
        train(reconstruction(settings), settings, config={"dtype": torch.float32})


@pytest.mark.parametrize("tensorboard", [None, False])
def test_a_place_that_can_not_be_written_is_said(
    reconstruction: Any, tmp_path: Path, tensorboard: bool | None
) -> None:
    (tmp_path / "run").write_text("a file in the way")
    settings = TrainingSettings(steps=1, tensorboard=tensorboard)
    with pytest.raises(ArtifactError, match="can't write"):
        train(reconstruction(settings), settings, tmp_path / "run")


def test_an_infinite_gradient_of_a_finite_loss_is_an_error(worker: Any) -> None:
    class Steep(worker.Reconstruction):  # type: ignore[misc, name-defined]
        def step(self, batch: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
            del batch
            # The slope of a square root at zero.
            return (self.decoder.bias * 0).abs().sqrt().sum(), {}

    settings = TrainingSettings(steps=1)
    with pytest.raises(DataError, match=r"the gradient's norm is (nan|inf) in step 1"):
        train(Steep(settings), settings)


def test_a_task_is_told_before_each_step_how_far_the_run_is(reconstruction: Any) -> None:
    def told(settings: TrainingSettings) -> list[float]:
        task = reconstruction(settings)
        found: list[float] = []
        task.heed = found.append
        trained(task)
        return found

    assert told(TrainingSettings(steps=4, batch_size=20)) == [0, 0.25, 0.5, 0.75]
    # All rows are one batch, so an epoch is a step.
    assert told(TrainingSettings(epochs=2, batch_size=90)) == [0, 0.5]


def test_a_task_that_heeds_progress_needs_an_end_that_is_known(reconstruction: Any) -> None:
    task = reconstruction(TrainingSettings(epochs=2, batch_size=90))
    counted = task.batches
    task.batches = lambda epoch, generator: iter(counted(epoch, generator))
    task.heed = print
    with pytest.raises(ConfigError, match="how many steps"):
        trained(task)
