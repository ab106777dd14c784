"""Tables of word vectors as codes: those that learn with the model, and those that are fitted."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from smalti.embeddings import CompressedEmbedding, build_compressor, build_table
from smalti.embeddings.differentiable_table import DifferentiableEmbedding
from smalti.errors import ConfigError, require
from smalti.translation import Translator, translators
from smalti.translation.tables import SHARED, USES


def new_tables(
    spec: Mapping[str, Any] | str | None,
    rows: int,
    model: Mapping[str, Any],
    *,
    start: Translator | None = None,
    counts: Tensor | None = None,
) -> dict[str, nn.Module] | None:
    """The tables of a new model, by use; None leaves it full ones.

    Args:
        spec: The compressor of all tables, or compressors by use; a use without one is full.
        rows: How many tokens.
        model: The spec of the model, which says the width and whether all uses share a table.
        start: A trained model, to whose tables those are fitted that can't start from nothing.
        counts: How often each token occurs.
    """
    if spec is None:
        return None
    defaults = inspect.signature(translators.get(model.get("translator", ""))).parameters
    dim, tied = (model.get(name, defaults[name].default) for name in ("dim", "tied"))
    made: dict[str, nn.Module] = {}
    for use, own in _by_use(spec, tied).items():
        compressor = build_compressor(own)
        try:
            made[use] = compressor.start(rows, dim)
        except ConfigError:
            if start is None:
                raise
            trained = start.words.dense(use if use != SHARED else USES[0]).detach()
            made[use] = compressor.fit(trained, counts=counts, special=(0, 1, 2, 3))
    return made


def _by_use(spec: Mapping[str, Any] | str, tied: bool) -> dict[str, Any]:
    names = (SHARED,) if tied else USES
    if isinstance(spec, str) or "compressor" in spec:
        return dict.fromkeys(names, spec)
    unknown = sorted(set(spec) - set(names))
    require(
        not unknown,
        f"expected a compressor, or compressors by use ({', '.join(names)}), got "
        f"{', '.join(unknown)}"
        + ("; with model.tied=false every use has a table of its own" if tied else ""),
    )
    return {use: own for use, own in spec.items() if own is not None}


def count_of(tokens: Sequence[Sequence[int]], rows: int) -> Tensor:
    """How often each token occurs."""
    flat = torch.tensor(list(chain.from_iterable(tokens)), dtype=torch.int64)
    return torch.bincount(flat, minlength=rows)


def export_tables(model: Translator) -> dict[str, dict[str, Any]]:
    """Leave codes alone in the place of what they were learned with.

    Returns:
        The specs of all tables that are compressed, by use.
    """
    found = {}
    for use, table in list(model.words.named_children()):
        if isinstance(table, DifferentiableEmbedding):
            model.words.add_module(use, table.eval().export())
        exported = model.words.get_submodule(use)
        if isinstance(exported, CompressedEmbedding):
            found[use] = exported.spec()
    return found


def empty_tables(specs: Mapping[str, Any]) -> dict[str, nn.Module]:
    """Tables to load tensors into, by use."""
    return {use: build_table(spec) for use, spec in specs.items()}


class TableBytes(NamedTuple):
    """Bytes of a table of word vectors."""

    saved: int
    full: int
    """In float32."""


def table_bytes(model: Translator) -> dict[str, TableBytes]:
    """Bytes of the tables of word vectors by use."""
    found = {}
    for use, table in model.words.named_children():
        full = getattr(table, "rows", 0) * getattr(table, "dim", 0) * 4
        saved = table.size().total if isinstance(table, CompressedEmbedding) else full
        found[use] = TableBytes(saved, full)
    return found
