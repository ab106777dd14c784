"""Several processes with one task: they agree on what to do, and the first of them writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from filelock import FileLock, Timeout

Value = TypeVar("Value")
# So long the others wait for what the first does alone, such as measuring a model.
PATIENCE = timedelta(days=2)


def are_several() -> bool:
    """Whether accelerate or torchrun started more processes than this one."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def is_first() -> bool:
    """Whether this process is the one of several that writes and tells."""
    return int(os.environ.get("RANK", "0")) == 0


def agreed(value: Value) -> Value:
    """What the first process has, on all of them; each waits for the others.

    Args:
        value: This process's own; what can be pickled.
    """
    if not are_several():
        return value
    torch, accelerate = import_module("torch"), import_module("accelerate")
    # Whoever trains later finds these processes joined already.
    accelerate.PartialState(cpu=not torch.accelerator.is_available(), timeout=PATIENCE)
    everyone: list[Value] = accelerate.utils.gather_object([value])
    return everyone[0]


def meet() -> None:
    """Wait for the others: what the first has written is there for all."""
    agreed(None)


@contextmanager
def locked(path: Path | str, *, wait: bool = True) -> Iterator[None]:
    """A block for these processes alone; the first holds the lock for all of them.

    Args:
        path: Of the lock.
        wait: Whether to wait for others who have it.

    Raises:
        filelock.Timeout: Others have it, and these do not wait.
    """
    lock, free = FileLock(path, blocking=wait), True
    if is_first():
        try:
            lock.acquire()
        except Timeout:
            free = False
    if not agreed(free):
        raise Timeout(str(path))
    try:
        yield
    finally:
        lock.release()
