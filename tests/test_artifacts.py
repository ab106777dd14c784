"""Saved directories: whole or not at all, and never trusted unchecked."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import smalti
from smalti import artifacts
from smalti.errors import ArtifactError, ConfigError
from smalti.quantizers import VectorQuantizer


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    layer = VectorQuantizer(4, 16).start_from(torch.randn(100, 4))
    smalti.save(layer, tmp_path / "layer", origin="a test")
    return tmp_path / "layer"


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


def rewrite(path: Path, **changes: object) -> None:
    """Edit a manifest and make its checksum right again, as a careful forger would."""
    manifest = json.loads(path.read_text())
    manifest.update(changes)
    manifest["checksum"] = artifacts._checksum(manifest)
    path.write_text(json.dumps(manifest))


def test_a_directory_holds_a_manifest_and_tensors_and_nothing_else(saved: Path) -> None:
    assert names(saved) == ["manifest.json", "tensors.safetensors"]
    manifest = json.loads((saved / "manifest.json").read_text())
    assert manifest["kind"] == "quantizer"
    assert manifest["spec"]["codebook_size"] == 16
    assert manifest["sizes"]["book.codewords"] == 16 * 4 * 4
    assert manifest["origin"] == "a test"
    assert names(saved.parent) == ["layer"]


def test_every_cut_of_the_tensors_is_noticed(saved: Path) -> None:
    whole = (saved / "tensors.safetensors").read_bytes()
    for length in (0, 1, 8, len(whole) // 2, len(whole) - 1):
        (saved / "tensors.safetensors").write_bytes(whole[:length])
        with pytest.raises(ArtifactError, match=r"tensors\.safetensors is damaged"):
            smalti.load(saved)


def test_every_changed_byte_is_noticed(saved: Path) -> None:
    for name in ("tensors.safetensors", "manifest.json"):
        whole = (saved / name).read_bytes()
        for place in range(0, len(whole), 37):
            edited = bytearray(whole)
            edited[place] ^= 1
            (saved / name).write_bytes(edited)
            with pytest.raises(ArtifactError):
                smalti.load(saved)
        (saved / name).write_bytes(whole)
    smalti.load(saved)


@pytest.mark.parametrize("name", ["tensors.safetensors", "manifest.json"])
def test_a_missing_file_is_named(saved: Path, name: str) -> None:
    (saved / name).unlink()
    with pytest.raises(ArtifactError, match=name.replace(".", r"\.")):
        smalti.load(saved)


def test_another_format_version_is_refused(saved: Path) -> None:
    rewrite(saved / "manifest.json", format_version=99)
    with pytest.raises(ArtifactError, match=r"version 99.*reads 1"):
        smalti.load(saved)


def test_settings_that_do_not_fit_the_tensors_are_refused(saved: Path) -> None:
    spec = json.loads((saved / "manifest.json").read_text())["spec"]
    rewrite(saved / "manifest.json", spec={**spec, "codebook_size": 32})
    with pytest.raises(ArtifactError, match=r"expected book.codewords of shape \(1, 32, 4\)"):
        smalti.load(saved)
    rewrite(saved / "manifest.json", spec={**spec, "decay": 7})
    with pytest.raises(ArtifactError, match="decay"):
        smalti.load(saved)


def test_codewords_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    layer = VectorQuantizer(4, 16)
    layer.codebook[3, 2] = torch.nan
    smalti.save(layer, tmp_path / "bad")
    with pytest.raises(ArtifactError, match="not finite"):
        smalti.load(tmp_path / "bad")


def test_foreign_places_are_refused(tmp_path: Path, saved: Path) -> None:
    for place in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(ArtifactError):
            smalti.load(place)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(ArtifactError, match="not a smalti artifact"):
        smalti.save(smalti.load(saved), tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
    with pytest.raises(ConfigError):
        smalti.save(torch.nn.Linear(2, 2), tmp_path / "linear")  # type: ignore[arg-type]


def test_a_directory_with_a_manifest_of_someone_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "my web page"}')
    (tmp_path / "index.html").write_text("hello")
    with pytest.raises(ArtifactError, match="not a smalti artifact"):
        smalti.save(VectorQuantizer(4, 16), tmp_path)
    assert names(tmp_path) == ["index.html", "manifest.json"]


def test_a_file_added_to_an_artifact_is_not_lost(saved: Path) -> None:
    (saved / "notes.txt").write_text("mine")
    with pytest.raises(ArtifactError):
        smalti.save(VectorQuantizer(4, 16), saved)
    assert (saved / "notes.txt").read_text() == "mine"


def test_a_link_to_an_artifact_stays_a_link(saved: Path) -> None:
    link = saved.parent / "link"
    link.symlink_to(saved)
    smalti.save(VectorQuantizer(4, 32), link)
    assert link.is_symlink()
    assert smalti.load(saved).code_sizes == (32,)
    assert names(saved.parent) == ["layer", "link"]


@pytest.mark.parametrize("place", ["layer/manifest.json/below", "a" * 300, "."])
def test_places_that_cannot_be_written_are_named(
    saved: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(saved.parent)
    with pytest.raises(ArtifactError):
        smalti.save(VectorQuantizer(4, 16), place)
    with pytest.raises(ArtifactError):
        smalti.load(place)
    with pytest.raises(ArtifactError):
        smalti.save(VectorQuantizer(4, 16), None)  # type: ignore[arg-type]


def test_saving_again_replaces_the_old_artifact(saved: Path) -> None:
    smalti.save(VectorQuantizer(4, 32), saved)
    loaded = smalti.load(saved)
    assert loaded.code_sizes == (32,)
    assert names(saved.parent) == ["layer"]


def test_a_failed_save_leaves_the_old_artifact(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_: object) -> str:
        raise OSError("no space left on device")

    monkeypatch.setattr(artifacts, "_digest", full_disk)
    with pytest.raises(ArtifactError, match="no space"):
        smalti.save(VectorQuantizer(4, 32), saved)
    monkeypatch.undo()
    assert smalti.load(saved).code_sizes == (16,)
    assert names(saved.parent) == ["layer"]


SAVER = """
import sys, smalti
from smalti.quantizers import VectorQuantizer
layers = [VectorQuantizer(32, size) for size in (1024, 2048)]
print("ready", flush=True)
while True:
    for layer in layers:
        smalti.save(layer, sys.argv[1])
"""


@pytest.mark.slow
def test_a_killed_save_leaves_the_old_artifact_or_the_new_one(tmp_path: Path) -> None:
    place = tmp_path / "layer"
    smalti.save(VectorQuantizer(32, 1024), place)
    for attempt in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVER, str(place)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.05 + 0.013 * attempt)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert smalti.load(place).code_sizes[0] in {1024, 2048}
