"""Image models as a user trains and uses them, mostly each command in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from smalti.cli.main import app
from smalti.errors import SmaltiError

pytest.importorskip("accelerate")
yaml = pytest.importorskip("yaml")
pytest.importorskip("sklearn")
Image = pytest.importorskip("PIL.Image")

TRAINING = {
    **{"steps": 30, "batch_size": 32, "learning_rate": 1e-2},
    **{"evaluate_every": 30, "checkpoint_every": 10},
}
CONFIG = {
    "kind": "autoencoder",
    "data": {"source": "digits"},
    "model": {
        "autoencoder": "hierarchical",
        "likelihood": "categorical",
        "quantizers": [{"quantizer": "depthwise", "num_codebooks": 2, "codebook_size": 8}] * 2,
        **{"dim": 8, "width": 8, "hidden": 8, "depth": 1, "stages": 1},
    },
    "training": TRAINING,
    "prior": {
        "model": {"prior": "autoregressive", "dim": 16, "depth": 1, "heads": 2, "dropout": 0.1},
        "training": TRAINING,
    },
}
# One thread: sums in another order have other last bits.
ALONE = {**os.environ, "OMP_NUM_THREADS": "1"}


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "smalti", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**ALONE, **environment}
    )


def refused(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def refused_here(*arguments: str) -> str:
    """The error of a command in this process, which is quicker; nothing is printed."""
    done = CliRunner().invoke(app, arguments)
    assert isinstance(done.exception, SmaltiError), done
    assert done.output == ""
    assert len(str(done.exception).splitlines()) == 1
    return str(done.exception)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("config") / "small.yaml"
    path.write_text(yaml.safe_dump(CONFIG))
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, config: Path) -> Path:
    place = tmp_path_factory.mktemp("runs") / "run"
    done = run("train", str(config), "-o", str(place), "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["finished"]
    assert list(content["stages"]) == ["autoencoder", "prior-top", "prior-bottom"]
    return place


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, trained: Path) -> Path:
    """The model alone, far from checkpoints and images."""
    place = tmp_path_factory.mktemp("models") / "model"
    place.symlink_to(trained / "model")
    return place


def test_evaluating_prints_distortion_and_rate_of_each_prior(model: Path) -> None:
    done = run("evaluate", str(model), "--data", "digits", "--json")
    found = json.loads(done.stdout)
    assert found["part"] == "held out"
    assert found["images"] == 180
    for bits in found["bits_per_dim"].values():
        assert bits["total"] == pytest.approx(bits["distortion"] + bits["rate"])
    assert list(found["bits_per_dim"]) == ["uniform", "unigram", "autoregressive"]
    assert set(found["alone"]) == set(found["levels"]) == {"top", "bottom"}
    table = run("evaluate", str(model), "--data", "digits").stdout
    assert "distortion" in table
    assert "zero level" in table


def test_inspecting_says_what_was_trained(trained: Path) -> None:
    found = json.loads(run("inspect", str(trained), "--json").stdout)
    assert found["kind"] == "trained image model"
    assert found["config"]["data"]["source"] == "digits"
    table = run("inspect", str(trained)).stdout
    assert "hierarchical" in table
    assert "uniform, unigram, autoregressive" in table


@pytest.mark.slow
def test_sampling_writes_one_picture_the_same_for_the_same_seed(
    tmp_path: Path, model: Path
) -> None:
    pictures = []
    for name, seed in (("one", "1"), ("again", "1"), ("other", "2")):
        path = tmp_path / f"{name}.png"
        done = run("sample", str(model), "-n", "6", "-o", str(path), "--seed", seed, "--json")
        assert json.loads(done.stdout)["prior"] == "autoregressive", done.stderr
        pictures.append(np.asarray(Image.open(path)))
    # Six images of 8 pixels in a row, with gaps of 2.
    assert pictures[0].shape == (12, 62, 3)
    assert np.array_equal(pictures[0], pictures[1])
    assert not np.array_equal(pictures[0], pictures[2])


def test_reconstructing_writes_a_file_for_each_image(tmp_path: Path, model: Path) -> None:
    place = tmp_path / "again"
    done = run(
        "reconstruct", str(model), "digits", "-o", str(place), "--limit", "3", "--levels", "top"
    )
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in place.iterdir()) == ["00000.png", "00001.png", "00002.png"]
    assert np.asarray(Image.open(place / "00000.png")).shape == (8, 8)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("evaluate", "RUN"), "--data"),
        (("evaluate", "RUN", "--data", "digits", "--text", "a.txt"), "image model"),
        (("evaluate", "RUN", "--data", "/nowhere"), "/nowhere"),
        (("sample", "RUN", "-o", "/nowhere/grid.png"), "/nowhere"),
        (("sample", "RUN", "-o", "OUT/grid.jpg"), ".png"),
        (("sample", "RUN", "-o", "OUT/grid.png", "--prior", "best"), "unigram"),
        (("sample", "/nowhere", "-o", "OUT/grid.png"), "/nowhere"),
        (("reconstruct", "RUN", "digits", "-o", "OUT/again", "--levels", "5"), "levels 0 to 1"),
        (("reconstruct", "RUN", "/nowhere", "-o", "OUT/again"), "/nowhere"),
    ],
)
def test_what_can_not_be_done_is_one_line_and_leaves_nothing(
    tmp_path: Path, model: Path, arguments: tuple[str, ...], word: str
) -> None:
    places = {"RUN": str(model), "OUT": str(tmp_path)}
    filled = []
    for argument in arguments:
        head, slash, tail = argument.partition("/")
        filled.append(places.get(head, head) + slash + tail)
    assert word in refused_here(*filled)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        (["training.stepz=5"], "did you mean training.steps?"),
        (["data.source=/nowhere"], "/nowhere"),
        (["model.autoencoder=hierarchic"], "hierarchical"),
        (["steps"], "key.sub=value"),
    ],
)
def test_a_bad_config_is_one_line_and_leaves_nothing(
    tmp_path: Path, config: Path, changes: list[str], word: str
) -> None:
    entries = [f"--set={change}" for change in changes]
    assert word in refused_here("train", str(config), "-o", str(tmp_path / "run"), *entries)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_model_is_one_line(tmp_path: Path, trained: Path) -> None:
    place = tmp_path / "model"
    place.mkdir()
    (place / "manifest.json").write_bytes((trained / "model" / "manifest.json").read_bytes())
    content = (trained / "model" / "tensors.safetensors").read_bytes()
    (place / "tensors.safetensors").write_bytes(content[:-1] + b"x")
    told = refused(run("sample", str(place), "-o", str(tmp_path / "grid.png")))
    assert "tensors.safetensors is damaged" in told


LONGER = [
    f"--set={part}training.{setting}"
    for part in ("", "prior.")
    for setting in ("steps=60", "checkpoint_every=5")
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, config: Path) -> Path:
    """A longer run that nobody disturbed."""
    place = tmp_path_factory.mktemp("runs") / "whole"
    assert run("train", str(config), "-o", str(place), *LONGER).returncode == 0
    return place


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["autoencoder", "prior-bottom"])
def test_a_run_that_was_killed_ends_with_the_same_weights(
    tmp_path: Path, config: Path, whole: Path, stage: str
) -> None:
    killed = tmp_path / "killed"
    command = [sys.executable, "-m", "smalti", "train", str(config), "-o", str(killed), *LONGER]
    with subprocess.Popen(command, env=ALONE, stdout=subprocess.DEVNULL) as process:
        limit = time.monotonic() + 120
        # Two checkpoints: the second one may be half written when the process dies.
        while len(list((killed / stage).glob("checkpoints/step-*"))) < 2:
            assert process.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < limit
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    assert not (killed / "model").exists()
    assert "resume" in refused(run("train", str(config), "-o", str(killed), *LONGER))
    done = run("train", str(config), "-o", str(killed), *LONGER, "--resume")
    assert done.returncode == 0, done.stderr
    ours, expected = (
        (place / "model" / "tensors.safetensors").read_bytes() for place in (killed, whole)
    )
    assert ours == expected


@pytest.mark.slow
def test_two_processes_train_together(tmp_path: Path, config: Path) -> None:
    launch = ["accelerate.commands.launch", "--cpu", "--num_processes=2", "--num_machines=1"]
    launch += ["--mixed_precision=no", "--dynamo_backend=no", "--main_process_port=0"]
    command = [sys.executable, "-m", *launch, "-m", "smalti", "train", str(config)]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "run"), "--json"],
        capture_output=True,
        text=True,
        check=False,
        env=ALONE,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["finished"]
    found = run("evaluate", str(tmp_path / "run"), "--data", "digits", "--json")
    assert json.loads(found.stdout)["images"] == 180


@pytest.mark.slow
def test_two_processes_count_all_codes_and_one_writes(tmp_path: Path, config: Path) -> None:
    place = tmp_path / "run"
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone"]
    changes = [f"--set={part}training.steps=4" for part in ("", "prior.")]
    done = subprocess.run(
        [*launch, "-m", "smalti", "train", str(config), "-o", str(place), *changes, "--json"],
        capture_output=True,
        text=True,
        check=False,
        env=ALONE,
    )
    assert done.returncode == 0, done.stderr
    # One of them told.
    assert json.loads(done.stdout)["finished"]
    assert sorted(path.name for path in (place / "model").iterdir()) == [
        "manifest.json",
        "tensors.safetensors",
    ]
    assert not [path for path in place.rglob("*") if path.name.startswith(".smalti-")]
    from smalti.priors import Unigram
    from smalti.recipes.images import load_run, read_training_images
    from smalti.recipes.images.coding import encode_all

    trained = load_run(place)
    pixels = read_training_images(trained.config.data).train.pixels
    grids = encode_all(trained.autoencoder, pixels)
    for prior, codes in zip(trained.prior("unigram").members(), grids, strict=True):
        assert isinstance(prior, Unigram)
        # Two codebooks of 8, side by side; each image once.
        expected = np.stack([codes.numpy() == code for code in range(8)], axis=-1).sum(axis=0)
        assert np.array_equal(prior.counts.numpy(), expected.reshape(*expected.shape[:2], 16))
