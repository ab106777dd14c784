"""Things that are made of a module's tensors, kept, and made anew when these have changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Made = TypeVar("Made")
# What is known to be up to date while a promise is kept need not be looked at again.
_promise: ContextVar[object | None] = ContextVar("promise", default=None)


@contextmanager
def settled() -> Iterator[None]:
    """A promise that no weights change within it.

    To find out that hundreds of tensors are what they were takes a part of a millisecond, which
    counts where one sentence after the other is translated by itself. At its first use within
    the promise each thing is still looked at, so that what changed before is seen.
    """
    before = _promise.set(_promise.get() or object())
    try:
        yield
    finally:
        _promise.reset(before)


@dataclass(frozen=True)
class _State:
    """How some tensors were when something was made of them.

    Their versions do not tell all: fused optimizers change weights and no version. So one number
    of each is looked at too, which any step changes in some of them.
    """

    versions: list[tuple[int, int]]
    numbers: list[NDArray[Any] | Tensor]
    values: list[float]


@dataclass
class _Kept(Generic[Made]):
    """What was made, of which state, and under which promise that was last found true."""

    made: Made
    state: _State
    promise: object | None


class Remade(Generic[Made]):
    """What was made of modules last, under a name; copies of a module begin without it."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, _Kept[Made]] = {}
        self._owned: list[Mapping[str, Tensor | None]] = []

    def get(self, name: Hashable, make: Callable[[], Made], *modules: nn.Module) -> Made:
        """What is kept under ``name``, or if it is not there or is out of date, what is made now.

        Args:
            name: One of several things made of the same modules.
            make: Makes it.
            modules: Whose tensors it is made of, always the same.
        """
        known, promise = self._kept.get(name), _promise.get()
        if known is not None and promise is not None and known.promise is promise:
            return known.made
        with torch.no_grad():
            return self._looked_at(name, known, promise, make, modules)

    def _looked_at(
        self,
        name: Hashable,
        known: _Kept[Made] | None,
        promise: object | None,
        make: Callable[[], Made],
        modules: tuple[nn.Module, ...],
    ) -> Made:
        """What is kept, if it is up to date, or what is made now."""
        if not self._owned:
            # To walk through modules themselves would take longer than what is saved.
            parts = [part for module in modules for part in module.modules()]
            owned = [owner for part in parts for owner in (part._parameters, part._buffers)]
            self._owned = [owner for owner in owned if owner]
        tensors = [item for owner in self._owned for item in owner.values() if item is not None]
        versions = [(tensor.data_ptr(), tensor._version) for tensor in tensors]
        if known is not None and known.state.versions == versions:
            state = known.state
            if [number.item() for number in state.numbers] == state.values:
                known.promise = promise
                return known.made
        numbers = [
            _first(tensor.detach())
            for tensor in tensors
            if tensor.dtype == torch.float32 and tensor.numel() > 0 and tensor.is_contiguous()
        ]
        made = make()
        state = _State(versions, numbers, [number.item() for number in numbers])
        self._kept[name] = _Kept(made, state, promise)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        del memo
        return type(self)()

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()


def _first(tensor: Tensor) -> NDArray[Any] | Tensor:
    """The first number where it lies; NumPy reads it ten times as fast as torch."""
    number = tensor.flatten()[:1]
    return number.numpy() if number.device.type == "cpu" else number
