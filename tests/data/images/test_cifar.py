"""Batches of CIFAR-10 are read in both of its formats, and no pickle gets to run anything."""

from __future__ import annotations

import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smalti.data.images import read_images
from smalti.errors import DataError

Array = np.ndarray[Any, np.dtype[Any]]
Noise = Callable[..., Array]
TRAIN = [f"data_batch_{number}" for number in range(1, 6)]


def as_python_2_wrote_it(data: Array, labels: list[int]) -> bytes:
    """A batch opcode by opcode, in the very order of the published files."""
    text = lambda word: b"U" + bytes([len(word)]) + word  # noqa: E731
    whole = lambda number: b"J" + struct.pack("<i", number)  # noqa: E731
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n"
        + b"cnumpy\nndarray\n"
        + (b"K\x00\x85" + text(b"b") + b"\x87R")
        + (b"(K\x01" + whole(data.shape[0]) + whole(data.shape[1]) + b"\x86")
        + (b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R")
        + (b"(K\x03" + text(b"|") + b"NNN" + whole(-1) + whole(-1) + b"K\x00tb")
        + (b"\x89T" + struct.pack("<i", data.size) + data.tobytes() + b"tb")
    )
    entries = (
        text(b"batch_label")
        + text(b"training batch 1 of 5")
        + (text(b"labels") + b"](" + b"".join(map(whole, labels)) + b"e")
        + (text(b"data") + array)
        + (text(b"filenames") + b"](" + text(b"a.png") * len(labels) + b"e")
    )
    return b"\x80\x02}(" + entries + b"u."


@pytest.fixture
def python_batches(tmp_path: Path, noise: Noise) -> Path:
    for number, name in enumerate([*TRAIN, "test_batch"]):
        content = as_python_2_wrote_it(noise(3, 3072, seed=number), [number, 1, 2])
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.fixture
def binary_batches(tmp_path: Path, noise: Noise) -> Path:
    for number, name in enumerate([*TRAIN, "test_batch"]):
        rows = np.insert(noise(3, 3072, seed=number), 0, [number, 1, 2], axis=1)
        (tmp_path / f"{name}.bin").write_bytes(rows.astype("uint8").tobytes())
    return tmp_path


@pytest.mark.parametrize("kind", ["python_batches", "binary_batches"])
def test_both_formats_give_red_green_and_blue_planes_with_labels(
    kind: str, noise: Noise, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(kind)
    train, test = read_images(folder), read_images(folder, "test")
    expected = np.concatenate([noise(3, 3072, seed=number) for number in range(5)])
    assert (train.pixels.numpy() == expected.reshape(15, 3, 32, 32)).all()
    assert train.labels is not None
    assert train.labels.tolist() == [0, 1, 2, 1, 1, 2, 2, 1, 2, 3, 1, 2, 4, 1, 2]
    assert (test.pixels.numpy() == noise(3, 3072, seed=5).reshape(3, 3, 32, 32)).all()
    assert test.labels is not None
    assert test.labels.tolist() == [5, 1, 2]


@pytest.mark.parametrize("protocol", [0, 2, 3, 4, 5])
def test_batches_of_newer_pythons_are_read_too(tmp_path: Path, noise: Noise, protocol: int) -> None:
    for order in ("C", "F"):
        data = np.array(noise(2, 3072), order=order)
        content = pickle.dumps({"data": data, "labels": [4, 2]}, protocol=protocol)
        (tmp_path / "data_batch_1").write_bytes(content)
        images = read_images(tmp_path / "data_batch_1")
        assert (images.pixels.numpy().reshape(2, 3072) == data).all()
        assert images.labels is not None
        assert images.labels.tolist() == [4, 2]


class Runs:
    """Calls a function when it is read from a pickle."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("function", [os.mkdir, eval, getattr, np.fromfile, np.load])
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_asks_for_a_function_is_refused_and_runs_nothing(
    tmp_path: Path, function: Callable[..., Any], protocol: int
) -> None:
    trap = tmp_path / "trap"
    argument = f"__import__('os').mkdir({str(trap)!r})" if function is eval else str(trap)
    content = pickle.dumps({"data": Runs(function, argument)}, protocol=protocol)
    (tmp_path / "data_batch_1").write_bytes(content)
    with pytest.raises(DataError, match=r"data_batch_1 asks for .*which is no plain data"):
        read_images(tmp_path / "data_batch_1")
    assert not trap.exists()


@pytest.mark.parametrize(
    "content",
    [
        {"data": np.array([{}, []], dtype=object), "labels": []},
        {"data": np.zeros((1, 3072)), "labels": [1]},
        {"data": np.zeros((1, 3072), "uint8"), "labels": {1, 2}},
    ],
)
def test_arrays_of_anything_but_whole_numbers_are_refused(tmp_path: Path, content: Any) -> None:
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps(content))
    with pytest.raises(DataError, match="data_batch_1"):
        read_images(tmp_path / "data_batch_1")


def test_every_cut_of_a_pickle_is_noticed(tmp_path: Path, noise: Noise) -> None:
    whole = as_python_2_wrote_it(noise(1, 3072), [1])
    path = tmp_path / "data_batch_1"
    for length in [*range(0, 200, 3), *range(200, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match="data_batch_1"):
            read_images(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"data": [1, 2]}, "expected an array called data in .*got: data"),
        ([1, 2], "expected an array called data in .*got: nothing of a dictionary"),
        ({"data": np.zeros((2, 3), "uint8"), "labels": [1, 2]}, r"\(n, 3072\) .*got \(2, 3\)"),
        ({"data": np.zeros((2, 3072), "uint8"), "labels": [1]}, "2 images .*got 1 labels"),
        ({"data": np.zeros((1, 3072), "uint8"), "labels": ["cat"]}, "a list of whole numbers"),
        ({"data": np.zeros((1, 3072), "uint8")}, "a list of whole numbers"),
    ],
)
def test_what_is_wrong_in_a_pickle_is_said(tmp_path: Path, content: Any, message: str) -> None:
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps(content))
    with pytest.raises(DataError, match=message) as caught:
        read_images(tmp_path / "data_batch_1")
    assert "data_batch_1" in str(caught.value)


@pytest.mark.parametrize("change", [-1, 1, -(3 * 3073)])
def test_a_binary_batch_of_another_length_is_refused(binary_batches: Path, change: int) -> None:
    path = binary_batches / "data_batch_3.bin"
    whole = path.read_bytes()
    path.write_bytes(whole[:change] if change < 0 else whole + b"\0" * change)
    with pytest.raises(DataError, match=r"rows of 3073 bytes in .*data_batch_3\.bin"):
        read_images(binary_batches)


def test_a_missing_batch_is_named(python_batches: Path) -> None:
    (python_batches / "data_batch_4").unlink()
    with pytest.raises(DataError, match="got no data_batch_4; unpack the whole set"):
        read_images(python_batches)
    assert len(read_images(python_batches, "test")) == 3
    with pytest.raises(DataError, match="no part 'valid'"):
        read_images(python_batches, "valid")
