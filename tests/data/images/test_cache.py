"""Decoded images are kept while their source is the same, and never trusted unchecked."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smalti.data.images import Images, read_images
from smalti.data.images.cache import cache_folder

Array = np.ndarray[Any, np.dtype[Any]]
Noise = Callable[..., Array]
Write = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path, noise: Noise, picture_file: Write) -> Path:
    for number, name in enumerate(("a/1.png", "a/2.png", "b/1.png")):
        picture_file(tmp_path / "set" / name, noise(4, 4, seed=number))
    return tmp_path / "set"


def kept(cache: Path) -> list[Path]:
    return sorted((cache / "images").iterdir())


def spoil(path: Path) -> None:
    """Change a picture's content but neither its time nor its size."""
    state = path.stat()
    path.write_bytes(b"\0" * state.st_size)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def assert_same(one: Images, other: Images) -> None:
    assert one.fingerprint() == other.fingerprint()
    assert one.bits == other.bits
    assert one.source == other.source
    assert one.labels is not None
    assert other.labels is not None
    assert one.labels.tolist() == other.labels.tolist()


def test_a_second_reading_does_not_decode(folder: Path, cache: Path) -> None:
    first = read_images(folder)
    assert sorted(file.name for file in kept(cache)[0].iterdir()) == [
        "manifest.json",
        "tensors.safetensors",
    ]
    for path in folder.rglob("*.png"):
        spoil(path)
    assert_same(read_images(folder), first)


def test_a_folder_is_the_same_by_another_path(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_images(folder)
    for path in folder.rglob("*.png"):
        spoil(path)
    monkeypatch.chdir(folder.parent)
    assert read_images("set").source == "set"
    assert len(kept(cache)) == 1


@pytest.mark.parametrize("change", ["content", "time", "new", "gone", "renamed"])
def test_a_changed_source_is_read_anew(
    folder: Path, cache: Path, noise: Noise, picture_file: Write, change: str
) -> None:
    read_images(folder)
    if change in {"content", "time"}:
        before = (folder / "a" / "1.png").stat()
        picture_file(folder / "a" / "1.png", noise(4, 4, seed=9))
        if change == "time":
            # Of the same size, one tick later.
            picture_file(folder / "a" / "1.png", noise(4, 4, seed=0)[::-1])
            os.utime(folder / "a" / "1.png", ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    elif change == "new":
        picture_file(folder / "c" / "1.png", noise(4, 4, seed=9))
    elif change == "gone":
        (folder / "a" / "2.png").unlink()
    else:
        (folder / "a").rename(folder / "z")
    assert_same(read_images(folder), read_images(folder, use_cache=False))
    assert len(kept(cache)) == 1


@pytest.mark.parametrize("name", ["manifest.json", "tensors.safetensors"])
@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_a_damaged_cache_is_silently_made_anew(
    folder: Path, cache: Path, name: str, damage: str
) -> None:
    first = read_images(folder)
    path = kept(cache)[0] / name
    whole = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        changed = bytearray(whole)
        changed[-40] ^= 1
        path.write_bytes(whole[:-40] if damage == "cut" else bytes(changed))
    assert_same(read_images(folder), first)
    assert path.is_file()
    for picture in folder.rglob("*.png"):
        spoil(picture)
    assert_same(read_images(folder), first)


def test_sizes_and_parts_are_kept_apart(
    folder: Path, cache: Path, noise: Noise, picture_file: Write
) -> None:
    assert read_images(folder).shape == (1, 4, 4)
    assert read_images(folder, size=2).shape == (1, 2, 2)
    assert read_images(folder).shape == (1, 4, 4)
    assert len(kept(cache)) == 2
    for part, count in (("train", 2), ("test", 1)):
        for number in range(count):
            picture_file(folder.parent / "parts" / part / f"{number}.png", noise(4, 4))
    assert len(read_images(folder.parent / "parts")) == 2
    assert len(read_images(folder.parent / "parts", "test")) == 1
    assert len(kept(cache)) == 4


def test_without_use_nothing_is_kept(folder: Path, cache: Path) -> None:
    read_images(folder, use_cache=False)
    assert not list(cache.iterdir())


def test_single_files_are_not_kept(folder: Path, cache: Path) -> None:
    read_images(folder / "a" / "1.png")
    assert not list(cache.iterdir())


def test_a_cache_that_can_not_be_written_is_done_without(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("SMALTI_CACHE", str(blocked))
    assert len(read_images(folder)) == 3
    assert blocked.read_text() == "not a folder"


def test_what_is_not_ours_is_left_alone(folder: Path, cache: Path) -> None:
    read_images(folder)
    place = kept(cache)[0]
    (place / "diary.txt").write_text("mine")
    (place / "manifest.json").write_text("{}")
    assert len(read_images(folder)) == 3
    assert (place / "diary.txt").read_text() == "mine"


def test_the_cache_is_the_named_folder_or_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMALTI_CACHE", str(tmp_path / "named"))
    assert cache_folder() == tmp_path / "named"
    monkeypatch.setenv("SMALTI_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("sys.platform", "linux")
    assert cache_folder() == tmp_path / "home" / "smalti"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "smalti"
