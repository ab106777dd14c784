"""Applies functions with gradients of their own; torch's ``Function.apply`` has no types."""

from __future__ import annotations

from typing import Any

from torch.autograd import Function


def applied(function: type[Function], *arguments: Any) -> Any:
    """What the function's ``forward`` gives, with the gradients of its ``backward``."""
    return function.apply(*arguments)
