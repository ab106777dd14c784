"""Things that are made of a module's tensors, kept, and made anew when these have changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Generic, Self, TypeVar

from torch import Tensor, nn

Made = TypeVar("Made")


class Remade(Generic[Made]):
    """What was made of modules last, under a name; copies of a module begin without it."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[Any, Made]] = {}
        self._owned: list[Mapping[str, Tensor | None]] = []

    def get(self, name: Hashable, make: Callable[[], Made], *modules: nn.Module) -> Made:
        """What is kept under ``name``, or if it is not there or is out of date, what is made now.

        Args:
            name: One of several things made of the same modules.
            make: Makes it.
            modules: Whose tensors it is made of, always the same.
        """
        if not self._owned:
            # To walk through modules themselves would take longer than what is saved.
            parts = [part for module in modules for part in module.modules()]
            owned = [owner for part in parts for owner in (part._parameters, part._buffers)]
            self._owned = [owner for owner in owned if owner]
        state = [
            (tensor.data_ptr(), tensor._version)
            for owner in self._owned
            for tensor in owner.values()
            if tensor is not None
        ]
        known = self._kept.get(name)
        if known is None or known[0] != state:
            known = self._kept[name] = (state, make())
        return known[1]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        del memo
        return type(self)()

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()
