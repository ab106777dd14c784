"""How many bytes a model takes: on disk, in memory, and its table."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from smalti.hub.groups import input_embedding
from smalti.hub.library import Model
from smalti.hub.modules import TableEmbedding


def disk_bytes(place: str | Path) -> int:
    """Bytes of a file, or of all files of a directory."""
    path = Path(place)
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


def memory_bytes(model: Model) -> dict[str, int]:
    """Bytes of a loaded model's parameters and buffers; what is shared counts once."""
    parameters = _bytes(list(model.parameters()))
    buffers = _bytes(list(model.buffers()))
    return {"parameters": parameters, "buffers": buffers, "total": parameters + buffers}


def table_bytes(model: Model) -> dict[str, int]:
    """Bytes of the model's input table as it is saved, by part; a dense one has only a total."""
    owner = input_embedding(model)
    if isinstance(owner, TableEmbedding):
        return owner.table.size().as_dict()
    weight = getattr(owner, "weight", None)
    return {"total": 0 if weight is None else _bytes([weight])}


def _bytes(tensors: list[Tensor]) -> int:
    """Bytes of the storages behind some tensors."""
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage() for tensor in tensors}
    return sum(storage.nbytes() for storage in storages.values())
