"""Bad images, bad places and full disks: one clear line, nothing lost, nothing left behind."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from smalti.cli.main import app
from smalti.errors import SmaltiError

pytest.importorskip("accelerate")
pytest.importorskip("constriction")
pytest.importorskip("sklearn")
yaml = pytest.importorskip("yaml")
Image = pytest.importorskip("PIL.Image")

ALONE = {**os.environ, "OMP_NUM_THREADS": "1"}


def here(*arguments: str | Path) -> Result:
    """The command in this process, which is quicker."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def refused(done: Result) -> str:
    """The one line of a command that printed nothing else."""
    assert isinstance(done.exception, SmaltiError), done
    assert done.stdout == ""
    return str(done.exception)


def contents(folder: Path) -> dict[str, bytes]:
    """All files below a folder, hidden ones too."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def saved(path: Path, *shape: int) -> Path:
    path.parent.mkdir(exist_ok=True)
    Image.fromarray(np.zeros(shape, np.uint8)).save(path)
    return path


def broken(path: Path) -> Path:
    """A picture whose second half is missing."""
    content = saved(path, 8, 8, 3).read_bytes()
    path.write_bytes(content[: len(content) // 2])
    return path


@pytest.mark.parametrize("command", ["encode", "reconstruct"])
@pytest.mark.parametrize("fault", ["unreadable", "grey", "mixed", "empty", "text", "deep"])
def test_bad_images_are_named_and_nothing_is_written(
    model: Path, tmp_path: Path, command: str, fault: str
) -> None:
    folder, made = tmp_path / "pictures", tmp_path / "made"
    folder.mkdir()
    made.mkdir()
    words = {
        "unreadable": ["bad.png", "can't read"],
        "grey": ["3 channels", "got 1"],
        "mixed": ["one size", "8 x 8", "4 x 8", "wide.png"],
        "empty": ["holds no pictures", str(folder)],
        "text": ["note.png", "can't read"],
        "deep": ["16"],
    }[fault]
    if fault == "unreadable":
        saved(folder / "a.png", 8, 8, 3)
        broken(folder / "bad.png")
    elif fault == "grey":
        saved(folder / "a.png", 8, 8)
    elif fault == "mixed":
        saved(folder / "a.png", 8, 8, 3)
        saved(folder / "wide.png", 4, 8, 3)
    elif fault == "text":
        (folder / "note.png").write_text("not a picture")
    elif fault == "deep":
        Image.fromarray(np.zeros((8, 8), np.uint16)).save(folder / "a.png")
    target = made / ("a.smt" if command == "encode" else "again")
    told = refused(here(command, model, folder, "-o", target))
    assert all(word in told for word in words), told
    assert contents(made) == {}
    assert list(made.iterdir()) == []


def test_training_on_bad_images_is_refused_before_anything_is_written(
    config: Path, tmp_path: Path
) -> None:
    folder, run = tmp_path / "pictures", tmp_path / "run"
    folder.mkdir()
    arguments = ("train", config, "-o", run, "--set", f"data.source={folder}")
    assert "holds no pictures" in refused(here(*arguments))
    saved(folder / "a.png", 8, 8, 3)
    saved(folder / "wide.png", 4, 8, 3)
    assert "one size" in refused(here(*arguments))
    broken(folder / "wide.png")
    assert "can't read the picture" in refused(here(*arguments))
    saved(folder / "wide.png", 8, 8, 3)
    assert "grey" in refused(here(*arguments, "--set", "data.channels=1"))
    assert not run.exists()


@pytest.mark.parametrize("command", ["encode", "decode", "reconstruct", "sample"])
def test_a_full_disk_leaves_the_older_output_or_none(
    model: Path, pictures: list[Path], tmp_path: Path, command: str, small_disk: Any
) -> None:
    file = tmp_path / "source.smt"
    assert here("encode", model, *pictures, "-o", file).exit_code == 0
    place = tmp_path / "made"
    place.mkdir()
    arguments = {
        "encode": ("encode", model, *pictures, "-o", place / "a.smt"),
        "decode": ("decode", file, "--model", model, "-o", place / "pictures"),
        "reconstruct": ("reconstruct", model, *pictures, "-o", place / "pictures"),
        "sample": ("sample", model, "-n", "4", "-o", place / "grid.png"),
    }[command]
    with small_disk(50):
        told = refused(here(*arguments))
    assert "can't write" in told
    assert list(place.iterdir()) == []
    assert here(*arguments).exit_code == 0
    before = contents(place)
    with small_disk(50):
        assert "can't write" in refused(here(*arguments))
    assert contents(place) == before


TRAINING = {
    **{"steps": 4, "batch_size": 8, "log_every": 1},
    **{"checkpoint_every": 2, "picture_every": 4, "tensorboard": False},
}
CONFIG = {
    "kind": "autoencoder",
    "data": {"source": "digits"},
    "model": {
        "autoencoder": "convolutional",
        "likelihood": "categorical",
        "quantizer": {"quantizer": "vector", "codebook_size": 8},
        **{"dim": 4, "width": 8, "hidden": 4, "depth": 1},
    },
    "training": TRAINING,
}


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("config") / "tiny.yaml"
    path.write_text(yaml.safe_dump(CONFIG))
    return path


@pytest.fixture(scope="module")
def trained(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run."""
    place = tmp_path_factory.mktemp("runs") / "whole"
    done = here("train", config, "-o", place, "--threads", "1")
    assert done.exit_code == 0, done.exception
    return place


def weights(run: Path) -> bytes:
    return (run / "model" / "tensors.safetensors").read_bytes()


# What does not fit: the first line, the second checkpoint's report, pictures, a checkpoint.
@pytest.mark.parametrize("most", [10, 400, 800, 5000])
def test_training_on_a_full_disk_says_so_and_goes_on_when_there_is_room(
    config: Path, trained: Path, tmp_path: Path, most: int, small_disk: Any
) -> None:
    run = tmp_path / "run"
    with small_disk(most):
        told = refused(here("train", config, "-o", run, "--threads", "1"))
    assert "can't write" in told
    assert len(told.splitlines()) == 1
    found = contents(run)
    assert not [name for name in found if ".smalti-" in name or name.endswith(".part")]
    journal = found.get("autoencoder/journal.jsonl", b"")
    assert journal == b"" or journal.endswith(b"}\n")
    done = here("train", config, "-o", run, "--threads", "1", "--resume")
    assert done.exit_code == 0, done.exception
    assert weights(run) == weights(trained)


def test_a_model_that_can_not_be_saved_leaves_the_older_one(
    config: Path, trained: Path, tmp_path: Path, small_disk: Any
) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    before = contents(run / "model")
    # Its checkpoints stand, only the model is written.
    with small_disk(1000):
        told = refused(here("train", config, "-o", run, "--threads", "1", "--resume"))
    assert "can't write" in told
    assert contents(run / "model") == before
    shutil.rmtree(run / "model")
    with small_disk(1000):
        refused(here("train", config, "-o", run, "--threads", "1", "--resume"))
    # What training left and the older page, and no part of a model.
    assert sorted(path.name for path in run.iterdir()) == ["autoencoder", "report.html"]
    assert here("train", config, "-o", run, "--threads", "1", "--resume").exit_code == 0
    assert weights(run) == weights(trained)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("most", "what"), [(600, "{run}/autoencoder/tensorboard:"), (5000, "the checkpoint of step 2")]
)
def test_a_full_disk_is_one_line_and_status_two(
    config: Path, tmp_path: Path, most: int, what: str
) -> None:
    run = tmp_path / "run"
    command = [sys.executable, "-m", "smalti", "train", str(config), "-o", str(run)]
    done = subprocess.run(
        [*command, "--set", "training.tensorboard=true"],
        capture_output=True,
        text=True,
        check=False,
        env=ALONE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith(f"smalti: can't write {what.format(run=run)}")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("model.widht=3", ["model:", "no setting widht (did you mean width?)"]),
        ("model.quantizer.codebok_size=3", ["vector has no setting", "did you mean codebook_size"]),
        ("model.quantizer={quantizer: depthwise, num_codebooks: 2, reducton: sum}", ["reduction?"]),
        (
            "model.quantizer={quantizer: depthwise, num_codebook: 2, codebook_size: 8}",
            ["needs the setting num_codebooks", "num_codebook was meant"],
        ),
        ("model.quantizer.dead={kind: revive, perid: 3}", ["did you mean period?"]),
        ("model.likelihood={likelihood: logistic_mixture, componets: 3}", ["mean components?"]),
        ("model.quantizer.quantizer=vectr", ["no quantizer 'vectr' (did you mean vector?)"]),
        ("prior={model: {detph: 2}, training: {steps: 1}}", ["prior.model:", "mean depth?"]),
        ("prior={model: {}, traning: {steps: 1}}", ["did you mean prior.training?"]),
        ("prior=[{model: {hedas: 2}, training: {steps: 1}}]", ["prior.model:", "mean heads?"]),
        ("data.augmentation={kind: flip-crop, shft: 3}", ["did you mean shift?"]),
        ("training.schedule={kind: cosine, warmup: 3}", ["mean training.schedule.warm_up?"]),
        ("data.growing=[{size: 4, stps: 3}]", ["did you mean data.growing.0.steps?"]),
        (
            "model.quantizer.quantizer=finite_scalar",
            ["codebook_size stays", "--set 'model.quantizer={quantizer: finite_scalar, ...}'"],
        ),
    ],
)
def test_an_unknown_key_names_the_nearest_known_one_at_any_depth(
    config: Path, tmp_path: Path, change: str, words: list[str]
) -> None:
    told = refused(here("train", config, "-o", tmp_path / "run", "--set", change))
    assert all(word in told for word in words), told
    assert "valid tuple" not in told
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_edited_or_cut_is_refused_and_nothing_is_written(
    model: Path, pictures: list[Path], tmp_path: Path
) -> None:
    file, made = tmp_path / "a.smt", tmp_path / "made"
    assert here("encode", model, *pictures, "-o", file, "--lossless").exit_code == 0
    content = file.read_bytes()
    chance = np.random.default_rng(0)
    for place in chance.choice(len(content), 5, replace=False):
        edited = bytearray(content)
        edited[place] ^= 1 + int(chance.integers(255))
        for bad in (bytes(edited), content[:place]):
            file.write_bytes(bad)
            assert "a.smt" in refused(here("decode", file, "--model", model, "-o", made))
            assert "a.smt" in refused(here("inspect", file))
    assert not made.exists()
