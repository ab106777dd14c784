"""Batches cut into shares: for each process its rows, and pieces of those to accumulate.

Shares keep the order of the rows, so that all of them one after the other are the batch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeGuard

import torch
from torch import Tensor

from smalti.errors import ShapeError, require


class Shareable(Protocol):
    """A batch that cuts itself, where the first axis of its tensors is not what to cut."""

    def __len__(self) -> int:
        """How many things the loss is a mean over."""

    def share(self, part: int, parts: int) -> Any:
        """Its ``part``-th share of ``parts``, a batch of the same kind."""

    def to(self, device: torch.device) -> Any:
        """The batch with its tensors on a device."""


class Share(NamedTuple):
    """A part of a batch."""

    batch: Any
    weight: float
    """Its part of the batch's mean."""


def shares(batch: Any, process: int, processes: int, pieces: int) -> list[Share]:
    """The share of one process, in pieces.

    A batch is a tensor, or tuples, lists, mappings and dataclasses of tensors with the rows
    first; lists of other things with an entry a row are cut too. Numbers, words and tensors
    without axes go to everyone. Any other kind of batch is :class:`Shareable`.

    Args:
        batch: The whole batch.
        process: Whose share.
        processes: How many there are.
        pieces: Into how many pieces it is cut, where it has so many rows.
    """
    rows = rows_of(batch)
    require(
        rows >= processes,
        f"a batch of {rows} rows can't be shared by {processes} processes; make larger batches, "
        "or leave the last one of an epoch out",
        ShapeError,
    )
    # The same number of pieces everywhere: layers may meet the other processes in a forward.
    pieces = min(pieces, rows // processes)
    mine = _cut(batch, process, processes, rows)
    found = [_cut(mine, piece, pieces, rows_of(mine)) for piece in range(pieces)]
    return [Share(part, rows_of(part) / rows) for part in found]


def rows_of(batch: Any) -> int:
    """How many rows a batch has."""
    if _cuts_itself(batch):
        require(len(batch) > 0, f"a share of a {type(batch).__name__} is empty", ShapeError)
        return len(batch)
    lengths = {tensor.shape[0] for tensor in _tensors(batch) if tensor.ndim}
    require(
        len(lengths) == 1 and lengths != {0},
        "expected a batch of tensors with the same number of rows, at least 1, got "
        + (f"{sorted(lengths)} rows" if lengths else f"{type(batch).__name__} without rows"),
        ShapeError,
    )
    return lengths.pop()


def on_device(batch: Any, device: torch.device) -> Any:
    """The batch with its tensors on ``device``."""
    if _cuts_itself(batch):
        return batch.to(device)
    return _mapped(batch, lambda tensor: tensor.to(device, non_blocking=True), lambda some: some)


def _cuts_itself(batch: Any) -> TypeGuard[Shareable]:
    # In each step of a loop, where a check of the whole protocol would be felt.
    return hasattr(batch, "share")


def _cut(batch: Any, part: int, parts: int, rows: int) -> Any:
    if parts == 1:
        return batch
    if _cuts_itself(batch):
        return batch.share(part, parts)
    span = slice(rows * part // parts, rows * (part + 1) // parts)
    return _mapped(
        batch,
        lambda tensor: tensor[span] if tensor.ndim else tensor,
        lambda some: some[span] if len(some) == rows else some,
    )


def _mapped(
    batch: Any, of_tensor: Callable[[Tensor], Tensor], of_list: Callable[[list[Any]], list[Any]]
) -> Any:
    """The batch with other tensors, and other lists where they hold no tensors."""

    def walk(value: Any) -> Any:
        if isinstance(value, Tensor):
            return of_tensor(value)
        if isinstance(value, list):
            has_tensors = next(_tensors(value), None) is not None
            return [walk(item) for item in value] if has_tensors else of_list(value)
        if isinstance(value, tuple):
            made = [walk(item) for item in value]
            return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
        if isinstance(value, Mapping):
            return {key: walk(item) for key, item in value.items()}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: walk(getattr(value, field.name)) for field in _fields(value)}
            return dataclasses.replace(value, **fields)
        return value

    return walk(batch)


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in _fields(value):
            yield from _tensors(getattr(value, field.name))


def _fields(value: Any) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(value) if field.init]
