"""What a run writes down: journal, TensorBoard, pictures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from smalti.errors import DataError, MissingExtraError, ShapeError
from smalti.training import TrainingSettings, read_journal
from smalti.training.extras import library
from smalti.training.journal import Journal
from smalti.training.record import Record


def steps(run: Path) -> list[int]:
    return [line["step"] for line in read_journal(run)]


def test_lines_after_the_checkpoint_are_cut_away(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "deep" / "run", told={})
    for step in (2, 4, 4, 6):
        journal.write("train", step, {"loss": 1.0 / step})
    # Told after the checkpoint of its step was written.
    journal.write("evaluate", 4, {"loss": 1.0})
    journal.close()
    journal = Journal(tmp_path / "deep" / "run", told={"train": 4})
    journal.write("train", 6, {"loss": 0.0})
    journal.close()
    assert steps(tmp_path / "deep" / "run") == [2, 4, 4, 6]
    assert read_journal(tmp_path / "deep" / "run")[3]["loss"] == 0.0


def test_a_line_that_was_half_written_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    file.write_text('{"step": 1, "kind": "train"}\n{"step": 2, "ki')
    assert steps(tmp_path) == [1]
    Journal(tmp_path, told={"train": 9}).close()
    assert file.read_text() == '{"step": 1, "kind": "train"}\n'


def test_numbers_that_json_lacks_become_null(tmp_path: Path) -> None:
    journal = Journal(tmp_path, told={})
    journal.write("evaluate", 1, {"metrics": {"a": float("nan"), "b": float("-inf"), "c": 1}})
    journal.close()
    text = (tmp_path / "journal.jsonl").read_text()
    assert json.loads(text)["metrics"] == {"a": None, "b": None, "c": 1}
    assert "NaN" not in text


def test_a_missing_journal_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="can't read the journal"):
        read_journal(tmp_path)


def test_tensorboard_reads_what_is_written_and_forgets_what_came_after(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    settings = TrainingSettings(steps=1, tensorboard=True)
    record = Record(tmp_path, settings, step=0, told={})
    for step in (1, 2, 3):
        record.figures("train", step, 0, {"loss": float(step)}, learning_rate=0.5)
    record.close()
    record = Record(tmp_path, settings, step=2, told={"train": 2})
    record.figures("train", 3, 0, {"loss": 30.0})
    record.close()
    board = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(point.step, point.value) for point in board.Scalars("train/loss")] == [
        (1, 1.0),
        (2, 2.0),
        (3, 30.0),
    ]
    assert board.Scalars("train/learning_rate")[0].value == 0.5


def test_pictures_are_png_files(tmp_path: Path) -> None:
    images = pytest.importorskip("PIL.Image")
    record = Record(tmp_path, TrainingSettings(steps=1, picture_every=1), step=0, told={})
    picture = torch.arange(24, dtype=torch.uint8).view(2, 4, 3)
    record.picture(7, 0, picture)
    with pytest.raises(ShapeError, match="expected a picture"):
        record.picture(8, 0, picture.float())
    record.close()
    (line,) = read_journal(tmp_path)
    image = images.open(tmp_path / "pictures" / line["file"])
    assert image.size == (4, 2)
    assert list(image.tobytes()) == list(range(24))


def test_a_missing_extra_is_named() -> None:
    with pytest.raises(MissingExtraError, match=r"Flying needs the extra train: pip install"):
        library("no_such_module", "Flying needs")
