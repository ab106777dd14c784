"""Puts a compressed table into a model, and takes it out again."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import nn

from smalti.embeddings import CompressedEmbedding
from smalti.errors import ShapeError, require
from smalti.hub.groups import Group, input_embedding, stand_ins
from smalti.hub.library import Model
from smalti.hub.modules import StandIn, TableEmbedding, TableHead, TableView

# Where a model keeps, while it is compressed, the ties that it had of its own.
OWN_TIES = "_ties_of_dense_model"


def put_in(model: Model, group: Group, table: CompressedEmbedding) -> TableEmbedding:
    """Let ``table`` stand in all places of a group; it takes the weight's device and type."""
    weight = group.weight
    require(
        (table.rows, table.dim) == (group.rows, group.dim),
        f"expected a table of {group.rows} rows of width {group.dim}, which is what "
        f"{type(model).__name__} has, got {table.rows} of {table.dim}",
        ShapeError,
    )
    fit_to(table, weight.device, weight.dtype)
    table.requires_grad_(weight.requires_grad)
    _loosen_ties(model, weight)
    owner = TableEmbedding(table, cast(nn.Embedding, model.get_submodule(group.owner)))
    model.set_submodule(group.owner, owner)
    for name in group.others:
        module = model.get_submodule(name)
        # A parent that stands in two places gives its child two names.
        if isinstance(module, nn.Linear):
            model.set_submodule(name, TableHead(owner, module))
        elif not isinstance(module, StandIn):
            model.set_submodule(name, TableView(owner, cast(nn.Embedding, module)))
    return owner


def fit_to(table: CompressedEmbedding, device: torch.device, dtype: torch.dtype) -> None:
    """Move a table, and cast it where its vectors have another type."""
    table.to(device)
    # A cast would touch tensors that are kept narrower than what they give.
    if table.output_dtype != dtype:
        table.to(dtype)


def take_out(model: Model, dtype: torch.dtype) -> None:
    """Let the dense table stand in all places again, tied as before."""
    owner: TableEmbedding = input_embedding(model)
    learns = any(parameter.requires_grad for parameter in owner.table.parameters())
    weight = nn.Parameter(owner.table.dense().to(dtype), requires_grad=learns)
    revived: dict[int, nn.Module] = {}
    for name, module in list(stand_ins(model)):
        if module.held is owner.table:
            known = revived.setdefault(id(module), module.revive(weight))
            model.set_submodule(name, known)
    _restore_ties(model)


def _loosen_ties(model: Model, weight: nn.Parameter) -> None:
    """Take the ties of ``weight`` from the lists by which transformers ties, saves and loads."""
    for part in _tied_parts(model):
        shared = {n for n, p in part.named_parameters(remove_duplicate=False) if p is weight}
        declared = part.get_expanded_tied_weights_keys(all_submodels=False)
        kept = _without(declared, shared)
        if len(kept) < len(declared):
            setattr(part, OWN_TIES, vars(part).get("_tied_weights_keys"))
            part._tied_weights_keys = kept
        part.all_tied_weights_keys = _without(part.all_tied_weights_keys, shared)


def _restore_ties(model: Model) -> None:
    for part in _tied_parts(model):
        if OWN_TIES in vars(part):
            own = vars(part).pop(OWN_TIES)
            if own is None:
                del part._tied_weights_keys
            else:
                part._tied_weights_keys = own
    for part in _tied_parts(model):
        found = dict(part.named_parameters(remove_duplicate=False))
        declared = part.get_expanded_tied_weights_keys(all_submodels=True)
        part.all_tied_weights_keys = {
            target: source
            for target, source in declared.items()
            if found.get(target) is found.get(source)
        }


def _tied_parts(model: Model) -> list[Any]:
    """The model and the models in it: those that know about ties."""
    return [part for part in model.modules() if hasattr(part, "all_tied_weights_keys")]


def _without(ties: dict[str, str], names: set[str]) -> dict[str, str]:
    return {
        target: source
        for target, source in ties.items()
        if target not in names and source not in names
    }
