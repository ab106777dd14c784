"""Tables of word vectors as codes: those that learn with the model, and those that are fitted."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from smalti.embeddings import CompressedEmbedding, build_compressor, build_table
from smalti.embeddings.differentiable_table import DifferentiableEmbedding
from smalti.errors import ConfigError
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
        spec: The compressor.
        rows: How many tokens.
        model: The spec of the model, which says the width and whether all uses share a table.
        start: A trained model, to whose tables those are fitted that can't start from nothing.
        counts: How often each token occurs.
    """
    if spec is None:
        return None
    compressor = build_compressor(spec)
    defaults = inspect.signature(translators.get(model.get("translator", ""))).parameters
    dim, tied = (model.get(name, defaults[name].default) for name in ("dim", "tied"))
    made: dict[str, nn.Module] = {}
    for use in (SHARED,) if tied else USES:
        try:
            made[use] = compressor.start(rows, dim)
        except ConfigError:
            if start is None:
                raise
            trained = start.words.dense(use if use != SHARED else USES[0]).detach()
            made[use] = compressor.fit(trained, counts=counts, special=(0, 1, 2, 3))
    return made


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


def table_bytes(model: Translator) -> tuple[int, int]:
    """Bytes of the tables of word vectors as saved, and of full ones in float32."""
    saved = full = 0
    for table in model.words.children():
        size = getattr(table, "rows", 0) * getattr(table, "dim", 0) * 4
        full += size
        saved += table.size().total if isinstance(table, CompressedEmbedding) else size
    return saved, full
