"""Rows read as they will be saved, and numbers checked to fit what they are saved as."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from smalti.embeddings.base import CompressedEmbedding
from smalti.embeddings.saved_form import as_saved
from smalti.errors import DataError, require


def read_rows(table: CompressedEmbedding, name: str, ids: Tensor) -> Tensor:
    """Some rows ``(n, width)`` of a stored tensor, as they will be saved, in the output's type.

    Only these rows are rounded: a stored tensor with a row for each token is large.
    """
    parameter: Tensor = getattr(table, name)
    values = functional.embedding(ids, parameter.view(len(parameter), -1))
    return as_saved(values, table.stored[name]).to(table.output_dtype)


def storable(values: Tensor, dtype: torch.dtype) -> Tensor:
    """The same numbers in float32, once it is sure that none is infinite as ``dtype``."""
    values = values.to(torch.float32)
    largest = values.abs().max() if values.numel() else values.new_zeros(())
    require(
        bool(largest <= torch.finfo(dtype).max),
        f"{str(dtype).removeprefix('torch.')} holds numbers up to {torch.finfo(dtype).max:g}, "
        f"got {float(largest):g}: scale the table down or choose precision='float32'",
        DataError,
    )
    return values
