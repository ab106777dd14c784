"""Finds a model's embedding table, and everything else in the model that shares it.

Places are found in the model at hand and never read from a file: the same checkpoint has
other names when it is opened as another class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import nn

from smalti.errors import ConfigError, require
from smalti.hub.library import Model
from smalti.hub.modules import StandIn


@dataclass(frozen=True)
class Group:
    """The modules of a model that share one table.

    Args:
        weight: The table.
        owner: Name of the input embedding.
        others: Names of further embeddings and of tied output layers.
    """

    weight: nn.Parameter
    owner: str
    others: tuple[str, ...]

    @property
    def rows(self) -> int:
        """How many vectors the table has."""
        return self.weight.shape[0]

    @property
    def dim(self) -> int:
        """Width of a vector."""
        return self.weight.shape[1]

    @property
    def names(self) -> list[str]:
        """All places, the owner first."""
        return [self.owner, *self.others]


def find_group(model: Model) -> Group:
    """The table of a model's input embedding with all places that share it.

    Raises:
        ConfigError: The model has no such table, or uses it in a way that can't be replaced.
    """
    embedding = input_embedding(model)
    require(
        not isinstance(embedding, StandIn),
        f"{type(model).__name__} has a compressed table already; "
        "call model.dequantize() before another is put in",
    )
    require(
        isinstance(embedding, nn.Embedding),
        f"expected a model whose input is a table of vectors (nn.Embedding), "
        f"got {type(model).__name__}, whose input is {_kind(embedding)}",
    )
    weight = embedding.weight
    names = [
        name.removesuffix(".weight")
        for name, parameter in model.named_parameters(remove_duplicate=False)
        if parameter is weight
    ]
    for name in names:
        _check_member(name, model)
    owner = next(name for name in names if model.get_submodule(name) is embedding)
    return Group(weight, owner, tuple(name for name in names if name != owner))


def input_embedding(model: Model) -> Any:
    """What turns a model's ids into vectors, ``None`` where there is nothing of the kind."""
    try:
        # A class of transformers that knows of none raises one or the other, and so below.
        return model.get_input_embeddings()
    except (AttributeError, NotImplementedError):
        return None


def output_head(model: Model) -> nn.Linear | None:
    """A model's output layer, where it is a linear one."""
    try:
        # Models without an output layer raise one or the other, as above.
        head = model.get_output_embeddings()
    except (AttributeError, NotImplementedError):
        return None
    return head if isinstance(head, nn.Linear) else None


def stand_ins(model: Model) -> Iterator[tuple[str, StandIn]]:
    """The places of a model where a compressed table stands, with their names."""
    for name, module in model.named_modules(remove_duplicate=False):
        if isinstance(module, StandIn):
            yield name, module


def _check_member(name: str, model: Model) -> None:
    try:
        module = model.get_submodule(name)
    except AttributeError:
        raise ConfigError(
            f"the table is also the parameter {name} of {type(model).__name__}, "
            "which is neither an embedding nor a linear layer: it can't be replaced"
        ) from None
    if isinstance(module, nn.Linear):
        known = type(module).forward is nn.Linear.forward
    else:
        # Embeddings of their own kind are known to do no more than to multiply by a number.
        plain = type(module).forward is nn.Embedding.forward
        known = isinstance(module, nn.Embedding) and (plain or hasattr(module, "embed_scale"))
        known = known and set(module._parameters) == {"weight"} and not module._modules
    require(
        known,
        f"the table is also the weight of {name}, a {type(module).__name__} whose work "
        "is not known: it can't be replaced",
    )


def _kind(module: Any) -> str:
    return "not known" if module is None else f"a {type(module).__name__}"
