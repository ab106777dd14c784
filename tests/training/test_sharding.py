"""Batches cut into shares: nothing lost, nothing twice, and weights that add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from smalti.errors import ShapeError
from smalti.training.sharding import on_device, rows_of, shares


class Pair(NamedTuple):
    """Two tensors."""

    inputs: Tensor
    targets: Tensor


@dataclass(frozen=True)
class Labelled:
    """A tensor, an entry a row, and a number for all."""

    rows: Tensor
    names: list[str]
    temperature: float


@dataclass(frozen=True)
class Columns:
    """A text in columns: the axis to cut is the second."""

    text: Tensor

    def __len__(self) -> int:
        return self.text.numel()

    def share(self, part: int, parts: int) -> Columns:
        """Some of the columns."""
        return Columns(self.text.tensor_split(parts, dim=1)[part])

    def to(self, device: torch.device) -> Columns:
        """The same elsewhere."""
        return Columns(self.text.to(device))


@pytest.mark.parametrize("rows", [4, 7, 12])
@pytest.mark.parametrize("processes", [1, 2, 4])
@pytest.mark.parametrize("pieces", [1, 3])
def test_shares_in_order_are_the_batch_and_weigh_one(
    rows: int, processes: int, pieces: int
) -> None:
    batch = torch.arange(rows)
    everyone = [shares(batch, rank, processes, pieces) for rank in range(processes)]
    # Processes make the same number of steps, however their rows are cut.
    assert len({len(own) for own in everyone}) == 1
    flat = [share for own in everyone for share in own]
    assert torch.equal(torch.cat([share.batch for share in flat]), batch)
    assert all(len(share.batch) > 0 for share in flat)
    assert sum(share.weight for share in flat) == pytest.approx(1)
    # A weighted mean of means is the mean.
    means = sum(float(share.batch.float().mean()) * share.weight for share in flat)
    assert means == pytest.approx((rows - 1) / 2)


def test_one_process_without_pieces_gets_the_batch_itself() -> None:
    batch = torch.arange(3)
    ((same, weight),) = shares(batch, 0, 1, 1)
    assert same is batch
    assert weight == 1.0


def test_structures_are_cut_together() -> None:
    x = torch.arange(4)
    batch: dict[str, Any] = {
        "pair": Pair(x, x * 10),
        "labelled": Labelled(x, ["a", "b", "c", "d"], 0.5),
        "tensors": [x, x + 1],
        "step": torch.tensor(7),
        "name": "digits",
    }
    ((second, _),) = shares(batch, 1, 2, 1)
    assert isinstance(second["pair"], Pair)
    assert second["pair"].targets.tolist() == [20, 30]
    assert second["labelled"].rows.tolist() == [2, 3]
    assert second["labelled"].names == ["c", "d"]
    assert second["labelled"].temperature == 0.5
    assert [tensor.tolist() for tensor in second["tensors"]] == [[2, 3], [3, 4]]
    assert second["step"] == 7
    assert second["name"] == "digits"


def test_a_batch_can_cut_itself() -> None:
    text = torch.arange(10).view(2, 5)
    found = [shares(Columns(text), rank, 2, 1)[0] for rank in (0, 1)]
    assert [share.batch.text.tolist() for share in found] == [
        [[0, 1, 2], [5, 6, 7]],
        [[3, 4], [8, 9]],
    ]
    assert [share.weight for share in found] == [0.6, 0.4]
    assert on_device(found[0].batch, torch.device("meta")).text.is_meta


def test_all_tensors_are_moved_to_the_device() -> None:
    batch = on_device((Pair(torch.zeros(2), torch.zeros(2)), "word"), torch.device("meta"))
    assert batch[0].targets.is_meta
    assert batch[1] == "word"


@pytest.mark.parametrize(
    "batch", [torch.zeros(0, 3), (torch.zeros(2), torch.zeros(3)), "words", torch.tensor(1.0)]
)
def test_batches_without_rows_in_common_are_refused(batch: Any) -> None:
    with pytest.raises(ShapeError, match="same number of rows"):
        rows_of(batch)
