"""Nested states as JSON and named tensors, and back: what a checkpoint is written as.

No pickle takes part: what comes back is numbers, words, lists and tensors, and nothing runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from smalti.errors import ArtifactError, ConfigError

# Each key marks what JSON has no word for.
TENSOR, TUPLE, MAPPING = "tensor", "tuple", "mapping"


def flattened(tree: Any) -> tuple[Any, dict[str, Tensor]]:
    """A state as JSON data, and its tensors by name."""
    tensors: dict[str, Tensor] = {}
    memory: set[int] = set()

    def below(name: str, key: object) -> str:
        return f"{name}/{key}" if name else str(key)

    def walk(value: Any, name: str) -> Any:
        if isinstance(value, Tensor):
            place = value.untyped_storage().data_ptr()
            # Tied weights are written once for each of their names.
            tensors[name] = value.detach().clone() if place in memory else value.detach()
            memory.add(place)
            return {TENSOR: name}
        if isinstance(value, Mapping):
            return {MAPPING: [[key, walk(item, below(name, key))] for key, item in value.items()]}
        if isinstance(value, (list, tuple)):
            items = [walk(item, below(name, place)) for place, item in enumerate(value)]
            return {TUPLE: items} if isinstance(value, tuple) else items
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise ConfigError(
            f"a checkpoint can't hold {name}, a {type(value).__name__}; it takes "
            "tensors, numbers, words, and lists, tuples and mappings of them"
        )

    return walk(tree, ""), tensors


def restored(plain: Any, tensors: Mapping[str, Tensor]) -> Any:
    """The inverse of :func:`flattened`."""
    if isinstance(plain, list):
        return [restored(item, tensors) for item in plain]
    if not isinstance(plain, dict):
        return plain
    try:
        ((mark, content),) = plain.items()
        if mark == TENSOR:
            return tensors[content]
        if mark == TUPLE:
            return tuple(restored(item, tensors) for item in content)
        if mark == MAPPING:
            return {key: restored(item, tensors) for key, item in content}
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"a checkpoint's state can't be read: {error}") from error
    raise ArtifactError(f"a checkpoint's state can't be read: it has an unknown part {mark!r}")
