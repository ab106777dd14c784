"""What stands where embeddings and tied heads stood: one owner of the table, and views of it.

The owner is the only module that registers the table, so that its tensors are saved once.
Views hold a reference that torch does not see, in a tuple.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from smalti.embeddings import CompressedEmbedding


class StandIn(nn.Module, ABC):
    """Takes the place of a module that held the table as its ``weight``.

    Args:
        module: The module that goes. What it was, without its parameters, is kept to make
            it again.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._shell = (_hollow(module),)
        self.train(module.training)

    @property
    @abstractmethod
    def owner(self) -> TableEmbedding:
        """The module that holds the table; every kind of place says which."""

    @property
    def held(self) -> CompressedEmbedding:
        """The table."""
        return self.owner.table

    @property
    def weight(self) -> Tensor:
        """The decoded table ``(rows, dim)``, for code that reads it; it can't be set."""
        table = self.held
        if not self.owner.filled:
            # Code that loads a model asks for shapes.
            return torch.empty(table.rows, table.dim, dtype=table.output_dtype, device="meta")
        if not torch.is_grad_enabled():
            return table.dense()
        decoded: Tensor = table(torch.arange(table.rows, device=device_of(table)))
        return decoded

    def revive(self, weight: nn.Parameter) -> nn.Module:
        """The module that stood here, with ``weight``."""
        (shell,) = self._shell
        module = _hollow(shell)
        for name in module._parameters:
            value = weight if name == "weight" else getattr(self, name)
            module.register_parameter(name, value)
        if "embed_scale" in module._buffers:
            module.embed_scale = torch.tensor(scale_of(module)).to(weight)
        return module.train(self.training)

    def extra_repr(self) -> str:
        """Rows and width, as ``print`` shows them."""
        return f"{self.held.rows}, {self.held.dim}"


class _Embedding(StandIn):
    def __init__(self, module: nn.Embedding) -> None:
        super().__init__(module)
        self.num_embeddings = module.num_embeddings
        self.embedding_dim = module.embedding_dim
        self.padding_idx = module.padding_idx
        self.scale = scale_of(module)
        # Where the model keeps its scale as a tensor, it rounds it to the type of the table.
        self.rounds_scale = isinstance(getattr(module, "embed_scale", None), Tensor)

    def forward(self, ids: Tensor) -> Tensor:
        """The vectors ``(..., dim)`` of ids ``(...)``, scaled as the model wants them."""
        vectors: Tensor = self.held(ids)
        if self.scale is None:
            return vectors
        return vectors * (vectors.new_tensor(self.scale) if self.rounds_scale else self.scale)


class TableEmbedding(_Embedding):
    """The owner: takes the place of the model's input embedding.

    Args:
        table: The compressed table.
        module: The embedding that goes.
    """

    def __init__(self, table: CompressedEmbedding, module: nn.Embedding) -> None:
        super().__init__(module)
        self.table = table
        self.filled = True

    @property
    def owner(self) -> TableEmbedding:
        """Itself."""
        return self


class TableView(_Embedding):
    """Takes the place of another embedding with the same weight.

    Args:
        owner: The module that holds the table.
        module: The embedding that goes.
    """

    def __init__(self, owner: TableEmbedding, module: nn.Embedding) -> None:
        super().__init__(module)
        self._owner = (owner,)

    @property
    def owner(self) -> TableEmbedding:
        """The module that holds the table."""
        return self._owner[0]


class TableHead(StandIn):
    """Takes the place of an output layer with the same weight; it keeps its own bias.

    Args:
        owner: The module that holds the table.
        module: The linear layer that goes.
    """

    def __init__(self, owner: TableEmbedding, module: nn.Linear) -> None:
        super().__init__(module)
        self._owner = (owner,)
        self.in_features, self.out_features = module.in_features, module.out_features
        self.bias = module.bias

    @property
    def owner(self) -> TableEmbedding:
        """The module that holds the table."""
        return self._owner[0]

    def forward(self, hidden: Tensor) -> Tensor:
        """Scores ``(..., rows)`` of hidden states ``(..., dim)``."""
        scores = self.held.logits(hidden)
        return scores if self.bias is None else scores + self.bias


def scale_of(module: nn.Module) -> float | None:
    """The number that an embedding multiplies its vectors by, if it does."""
    scale: Any = getattr(module, "scalar_embed_scale", None)
    if scale is None:
        scale = getattr(module, "embed_scale", None)
    return None if scale is None else float(scale)


def device_of(table: nn.Module) -> torch.device:
    """Where a table's tensors are."""
    tensor = next(table.parameters(), None)
    return (next(table.buffers()) if tensor is None else tensor).device


def _hollow(module: nn.Module) -> nn.Module:
    """A copy of a module that shares nothing that changes, its parameters left out."""
    shell = copy.copy(module)
    shell._parameters = dict.fromkeys(module._parameters)
    shell._buffers = dict(module._buffers)
    return shell
