"""Encoding and decoding as a user types it: what one process writes, another one reads."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from smalti.cli.main import app
from smalti.errors import SmaltiError

pytest.importorskip("constriction")
Image = pytest.importorskip("PIL.Image")

ALONE = {**os.environ, "OMP_NUM_THREADS": "1"}


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "smalti", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=ALONE)


def here(*arguments: str | Path) -> Result:
    """The command in this process, which is quicker."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_lossless_pictures_come_back(model: Path, pictures: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "all.smt"
    done = run("encode", model, *pictures, "-o", file, "--lossless", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["bytes"] == file.stat().st_size
    assert (told["images"], told["prior"], told["lossless"]) == (3, "unigram", True)
    predicted = told["predicted_code_bits"] + told["predicted_pixel_bits"]
    assert told["predicted_bits"] == pytest.approx(predicted)
    over = 100 * (8 * file.stat().st_size / predicted - 1)
    assert told["over_prediction_percent"] == pytest.approx(over)
    # Noise: nothing is smaller than the pixels themselves, 192 bytes an image.
    assert min(told["png_bytes"], told["webp_bytes"]) > 3 * 192
    done = run("decode", file, "--model", model, "-o", tmp_path / "again", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["images"] == 3
    again = sorted((tmp_path / "again").iterdir())
    assert [path.name for path in again] == ["00000.png", "00001.png", "00002.png"]
    for before, after in zip(pictures, again, strict=True):
        assert np.array_equal(np.asarray(Image.open(before)), np.asarray(Image.open(after)))


def test_the_prior_that_wrote_a_file_is_found(
    model: Path, pictures: list[Path], tmp_path: Path
) -> None:
    file = tmp_path / "one.smt"
    done = here("encode", model, pictures[0], "-o", file, "--prior", "uniform", "--size", "8")
    assert done.exit_code == 0, done.output
    assert "resized to 8 x 8" in done.stderr
    done = here("decode", file, "--model", model / "model", "-o", tmp_path / "again")
    assert done.exit_code == 0, done.output
    assert Image.open(tmp_path / "again" / "00000.png").size == (8, 8)


def test_people_see_sizes_side_by_side(model: Path, pictures: list[Path], tmp_path: Path) -> None:
    done = here("encode", model, *pictures, "-o", tmp_path / "a.smt", "--lossless")
    for word in ("PNG bytes", "WebP bytes", "bits/dim", "(distortion)", "over prediction"):
        assert word in done.stdout
    arguments = ("encode", model, *pictures, "-o", tmp_path / "a.smt", "--lossless")
    assert "PNG" not in here(*arguments, "--no-compare").stdout


def test_of_a_file_with_loss_the_loss_is_told(
    model: Path, pictures: list[Path], tmp_path: Path
) -> None:
    file = tmp_path / "a.smt"
    told = json.loads(here("encode", model, *pictures, "-o", file, "--json").stdout)
    assert told["bits_per_pixel"] == pytest.approx(8 * file.stat().st_size / (3 * 64))
    assert here("decode", file, "--model", model, "-o", tmp_path / "again").exit_code == 0
    errors = [
        (np.asarray(Image.open(path)) / 255.0 - np.asarray(Image.open(before)) / 255.0) ** 2
        for before, path in zip(pictures, sorted((tmp_path / "again").iterdir()), strict=True)
    ]
    assert told["mse_0_to_1"] == pytest.approx(np.mean(errors))
    assert told["psnr_db"] == pytest.approx(-10 * np.log10(np.mean(errors)))
    assert "png_bytes" not in told
    assert "PSNR" in here("encode", model, *pictures, "-o", file).stdout


def test_inspecting_a_file_says_what_it_holds_and_which_model_it_needs(
    model: Path, pictures: list[Path], tmp_path: Path
) -> None:
    file = tmp_path / "a.smt"
    assert here("encode", model, *pictures, "-o", file, "--lossless").exit_code == 0
    told = json.loads(here("inspect", file, "--json").stdout)
    assert (told["count"], told["shape"], told["bits"]) == (3, [3, 8, 8], 8)
    assert (told["mode"], told["prior"]) == ("lossless", ["unigram"])
    assert len(told["model"]) == 64
    assert told["bytes"] == file.stat().st_size
    assert told["bits_per_dim"] == pytest.approx(8 * file.stat().st_size / (3 * 3 * 64))
    assert "lossless" in here("inspect", file).stdout


def test_reconstructions_keep_the_names_of_their_files(
    model: Path, pictures: list[Path], tmp_path: Path
) -> None:
    def made(*images: Path, more: tuple[str, ...] = ()) -> list[str]:
        place = tmp_path / "made"
        done = here("reconstruct", model, *images, "-o", place, *more)
        assert done.exit_code == 0, done.exception
        names = sorted(path.name for path in place.iterdir())
        shutil.rmtree(place)
        return names

    folder = tmp_path / "photos"
    (folder / "cats").mkdir(parents=True)
    for name in ("z.png", "b.png", "cats/b.png"):
        shutil.copy(pictures[0], folder / name)
    assert made(folder) == ["b.png", "cats-b.png", "z.png"]
    assert made(folder, more=("--limit", "2")) == ["b.png", "cats-b.png"]
    Image.open(pictures[0]).save(folder / "z.bmp")
    # Their endings tell them apart.
    assert made(folder) == ["b.png", "cats-b.png", "z.bmp.png", "z.png"]
    assert made(*pictures[:2]) == ["a.png", "b.png"]
    assert made(folder / "z.png", folder / "z.png") == ["00000.png", "00001.png"]


def test_what_can_not_be_done_is_said_and_leaves_nothing(
    model: Path, pictures: list[Path], tmp_path: Path
) -> None:
    file, again = tmp_path / "a.smt", tmp_path / "again"
    foreign = tmp_path / "foreign.smt"
    foreign.write_bytes(b"not ours")
    for arguments, word in (
        (("encode", model, pictures[0], "-o", foreign), "no .smt file"),
        (("encode", model, pictures[0], "-o", file, "--prior", "best"), "no prior 'best'"),
        (("encode", model, pictures[0], "-o", file, "--size", "16"), "the prior knows"),
        (("encode", tmp_path / "nothing", pictures[0], "-o", file), "nothing"),
        (("decode", foreign, "--model", model, "-o", again), "no .smt file"),
        (("decode", file, "--model", model, "-o", again), "can't read"),
    ):
        done = here(*arguments)
        assert isinstance(done.exception, SmaltiError), done
        assert word in str(done.exception)
        assert done.stdout == ""
    assert list(tmp_path.iterdir()) == [foreign]
