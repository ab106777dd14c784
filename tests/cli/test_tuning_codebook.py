"""``smalti tune codebook`` as a user types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from smalti.cli import main

pytest.importorskip("accelerate")
pytest.importorskip("yaml")
pytest.importorskip("sklearn")

SMALL = ("--data", "digits", "--set", "model.width=8", "--set", "model.hidden=4")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "smalti", "tune", "codebook", *arguments]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, check=False, env=ENVIRONMENT
    )


class Here:
    """Runs the command in this process.

    Args:
        monkeypatch: Puts the arguments in place.
        capsys: Hears what is printed.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def run(self, *arguments: str) -> tuple[object, str, str]:
        """The status, and what was printed on stdout and stderr."""
        self.monkeypatch.setattr(sys, "argv", ["smalti", "tune", "codebook", *arguments])
        with pytest.raises(SystemExit) as ended:
            main.run()
        return ended.value.code, *self.capsys.readouterr()


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(monkeypatch, capsys)


def untimed(content: dict[str, Any]) -> dict[str, Any]:
    for arm in content["arms"]:
        for figures in (arm["mean"], arm["spread"], *arm["seeds"].values()):
            figures.pop("seconds", None)
    return content


def test_one_table_says_error_rate_and_gap_and_the_choice_over_training(
    tmp_path: Path, here: Here
) -> None:
    place = tmp_path / "study"
    options = ("--capacity", "64", "--widths", "1,4", "--steps", "6", "-o", str(place))
    status, printed, told = here.run(*SMALL, *options)
    assert status == 0, told
    header = next(line for line in printed.splitlines() if line.startswith("arm"))
    names = ["MSE", "PSNR", "bits", "bits/dim", "coded", "gap", "relative", "numbers", "seconds"]
    assert all(name in header.split() for name in names)
    assert "best fixed pair: " in printed
    assert "…" not in printed
    # Finished arms are not trained again, and the same figures come as JSON.
    _, again, told = here.run(*SMALL, *options, "--resume", "--json")
    assert "seed 0" not in told
    content = json.loads(again)
    assert content == json.loads((place / "results.json").read_text())
    assert [arm["name"] for arm in content["arms"]] == ["16x4", "64x1", "adaptive"]
    for arm in content["arms"]:
        assert f"{arm['mean']['mse_0_to_1']:.6f}" in printed
        assert f"{arm['mean']['rate_bits']:.2f}" in printed
    shares = content["arms"][-1]["history"]["0"][0]["shares"]
    assert f"{100 * shares[0]:.1f}" in printed


@pytest.mark.slow
def test_a_killed_study_goes_on_to_the_figures_of_one_that_was_not(tmp_path: Path) -> None:
    options = (*SMALL, "--pairs", "16x4,64x1", "--steps", "100", "--json")
    options = (*options, "--set", "training.checkpoint_every=20")
    whole = json.loads(run(*options, "-o", str(tmp_path / "whole")).stdout)
    place = tmp_path / "killed"
    second = place / "64x1" / "seed-0" / "autoencoder" / "checkpoints"
    with subprocess.Popen(
        command(*options, "-o", str(place)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=ENVIRONMENT,
    ) as process:
        while process.poll() is None and not (second.is_dir() and any(second.iterdir())):
            time.sleep(0.01)
        process.kill()
    assert not (place / "results.json").exists()
    resumed = run(*options, "-o", str(place), "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert "16x4" not in resumed.stderr
    assert untimed(json.loads(resumed.stdout)) == untimed(whole)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--capacity", "100", "--widths", "3,5"), "divide the capacity 100"),
        (("--widths", "1;2"), "--widths such as 1,2,4,8"),
        (("--pairs", "16x4,64"), "--pairs such as"),
        (("--pairs", "16x4,64x1", "--capacity", "100"), "--capacity is 100"),
        (("--pairs", "16x4,64x1", "--widths", "1"), "not both"),
        (("--capacity", "64", "--seed", "1", "--seeds", "2"), "not both"),
        (("--capacity", "64", "--seed", "1", "--seed", "1"), "all different, got [1, 1]"),
        (("--capacity", "64", "--set", "training.step=5"), "did you mean training.steps?"),
        (("--capacity", "64", "--data", "/nowhere"), "/nowhere"),
        (("--capacity", "64", "/nowhere.yaml"), "/nowhere.yaml"),
    ],
)
def test_what_can_not_be_done_is_one_line_and_leaves_nothing(
    tmp_path: Path, here: Here, options: tuple[str, ...], word: str
) -> None:
    place = tmp_path / "study"
    named = () if "--data" in options else ("--data", "digits")
    status, printed, told = here.run(*named, *options, "-o", str(place))
    assert status == 2
    assert printed == ""
    assert word in told
    assert len(told.splitlines()) == 1
    assert not place.exists()


def test_without_images_at_hand_digits_are_taken_and_named(
    tmp_path: Path, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMALTI_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    options = ("--capacity", "8", "--widths", "1,2", "--steps", "1", "-o", str(tmp_path / "study"))
    status, printed, told = here.run(*SMALL[2:], *options, "--set", "model.dim=8")
    assert status == 0, told
    assert "not used, since the arms bring their own or have none: model.dim" in told
    assert "no images named, so these are: digits" in told
    assert "the digits of scikit-learn" in printed
