"""The table of a model that is being loaded: first its shape, then its numbers."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from smalti.embeddings import CompressedEmbedding, Compressor, build_table
from smalti.errors import ArtifactError, SmaltiError, require
from smalti.hub.groups import Group, find_group, input_embedding, output_head
from smalti.hub.library import Model
from smalti.hub.modules import TableEmbedding, device_of
from smalti.hub.plugin import INPUT, SmaltiConfig
from smalti.hub.swapping import fit_to, put_in


def put_in_skeleton(model: Model, config: SmaltiConfig) -> None:
    """Give a model without numbers an empty table, so that its tensors are looked for."""
    _tie_input(model, with_head=not config.untied_head)
    group = find_group(model)
    try:
        put_in(model, group, built(config)).filled = False
    except SmaltiError as error:
        raise ArtifactError(f"the table does not fit the model: {error}") from error
    config.places = places_of(group)


def fill_skeleton(model: Model, config: SmaltiConfig) -> None:
    """Move what was loaded into a table made anew, whose types are as they should be."""
    owner: TableEmbedding = model.get_input_embeddings()
    owner.filled = True
    loaded = owner.table
    tensors = loaded.state_dict(keep_vars=True)
    if any(tensor.is_meta for tensor in tensors.values()):
        return  # offloaded to disk: there are no numbers here
    missing = [n for n, t in tensors.items() if not getattr(t, "_is_hf_initialized", False)]
    require(
        not missing,
        f"the checkpoint lacks {', '.join(missing)} of the table: it is damaged or belongs to "
        "another model",
        ArtifactError,
    )
    table = built(config)
    try:
        table.load_state_dict(tensors)
    except RuntimeError as error:
        raise ArtifactError(f"the checkpoint does not fit its config.json: {error}") from error
    fit_to(table, device_of(loaded), loaded.output_dtype)
    owner.table = table


def settle(model: Model, expected: Mapping[str, tuple[tuple[int, ...], torch.dtype]]) -> None:
    """Check the shapes of a loaded model, and give its numbers the type that was asked for.

    Early versions of transformers 5 keep the type of the file where a name differs.
    """
    kept = {
        *(getattr(model, "_keep_in_fp32_modules", None) or ()),
        *(getattr(model, "_keep_in_fp32_modules_strict", None) or ()),
    }
    for name, parameter in model.named_parameters():
        shape, dtype = expected.get(name, (tuple(parameter.shape), parameter.dtype))
        require(
            tuple(parameter.shape) == shape,
            f"{name} has shape {tuple(parameter.shape)} in the checkpoint, its config.json "
            f"asks for {shape}",
            ArtifactError,
        )
        if parameter.dtype != dtype and not any(word in name for word in kept):
            parameter.data = parameter.data.to(dtype)


def compress(model: Model, compressor: Compressor, config: SmaltiConfig) -> None:
    """Fit a table to a loaded dense model and put it in."""
    group = find_group(model)
    table = compressor.fit(group.weight, special=special_rows(model, group.rows))
    describe(model, group, table, config)
    put_in(model, group, table)


def describe(model: Model, group: Group, table: CompressedEmbedding, config: SmaltiConfig) -> None:
    """Write down what is put into a model, before it is."""
    head = output_head(model)
    config.tables = {INPUT: table.spec()}
    config.places = places_of(group)
    config.untied_head = head is not None and head.weight is not group.weight


def special_rows(model: Model, rows: int) -> list[int]:
    """The ids that a model's configuration has a use for, such as padding."""
    config = model.config.get_text_config()
    named = (getattr(config, f"{name}_token_id", None) for name in ("pad", "bos", "eos", "unk"))
    # Some models have several ends.
    flat = (i for ids in named for i in (ids if isinstance(ids, list) else [ids]))
    return sorted({i for i in flat if isinstance(i, int) and 0 <= i < rows})


def _tie_input(model: Model, with_head: bool) -> None:
    """Tie what shares the input's table; while a model is loaded, transformers does not yet."""
    head = None if with_head else output_head(model)
    weights = dict(model.named_parameters(remove_duplicate=False))
    ties = [
        {target, source}
        for target, source in model.all_tied_weights_keys.items()
        if head is None or weights.get(target) is not head.weight
    ]
    table = getattr(input_embedding(model), "weight", None)
    joined = {name for name, weight in weights.items() if weight is table}
    # A tie may lead to a third place over a second one.
    while more := [tie for tie in ties if joined & tie and not tie <= joined]:
        joined.update(*more)
    for name in joined:
        place, _, leaf = name.rpartition(".")
        setattr(model.get_submodule(place), leaf, table)


def places_of(group: Group) -> dict[str, list[str]]:
    """The names of a group, as the configuration has them."""
    return {INPUT: group.names}


def built(config: SmaltiConfig) -> CompressedEmbedding:
    """An empty table in main memory, also where a model is made without numbers."""
    with torch.device("cpu"):
        return build_table(config.tables[INPUT])
