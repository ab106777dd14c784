"""Tables, counts and ids are checked here, once, where they come in."""

from __future__ import annotations

import torch
from torch import Tensor

from smalti.errors import DataError, ShapeError, require


def checked_table(table: Tensor) -> Tensor:
    """A table as float32 on the CPU, without a gradient."""
    require(
        isinstance(table, Tensor)
        and table.dim() == 2
        and table.is_floating_point()
        and table.numel() > 0,
        "expected a floating-point table (rows, dim), got "
        + (f"{table.dtype} {tuple(table.shape)}" if isinstance(table, Tensor) else repr(table)),
        ShapeError,
    )
    table = table.detach().to("cpu", torch.float32)
    finite = torch.isfinite(table).all(dim=1)
    require(
        bool(finite.all()),
        f"the table has rows that are not finite, the first is row {int(finite.int().argmin())}",
        DataError,
    )
    return table.contiguous()


def checked_counts(counts: Tensor | None, rows: int) -> Tensor | None:
    """Counts as float64 of at least zero, one a row, not all zero."""
    if counts is None:
        return None
    counts = torch.as_tensor(counts)
    require(
        counts.dim() == 1 and len(counts) == rows,
        f"expected one count a row, ({rows},), got {tuple(counts.shape)}: "
        "counts must come from the model's own tokenizer",
        ShapeError,
    )
    counts = counts.detach().to("cpu", torch.float64)
    require(
        bool(torch.isfinite(counts).all()) and bool((counts >= 0).all()) and bool(counts.sum() > 0),
        "expected counts that are finite, not negative and not all zero",
        DataError,
    )
    return counts


def checked_metric(metric: Tensor | None, dim: int) -> Tensor | None:
    """What errors cost, as a symmetric float64 matrix ``(dim, dim)``."""
    if metric is None:
        return None
    metric = torch.as_tensor(metric)
    require(
        metric.shape == (dim, dim) and metric.is_floating_point(),
        f"expected a metric ({dim}, {dim}) of floating-point numbers, "
        f"got {metric.dtype} {tuple(metric.shape)}",
        ShapeError,
    )
    metric = metric.detach().to("cpu", torch.float64)
    require(
        bool(torch.isfinite(metric).all()) and bool(metric.diagonal().sum() > 0),
        "expected a metric that is finite and costs something",
        DataError,
    )
    return (metric + metric.T) / 2


def checked_ids(ids: Tensor, rows: int) -> Tensor:
    """Ids as whole numbers in range; the range is not checked inside compiled graphs."""
    require(
        isinstance(ids, Tensor) and not ids.is_floating_point() and ids.dtype != torch.bool,
        f"expected ids as whole numbers, got {getattr(ids, 'dtype', type(ids).__name__)}",
        ShapeError,
    )
    if not torch.compiler.is_compiling() and ids.device.type == "cpu" and ids.numel():
        low, high = torch.aminmax(ids)
        if int(low) < 0 or int(high) >= rows:
            raise IndexError(f"ids must be in 0..{rows - 1}, got {int(low)}..{int(high)}")
    return ids.long()


DTYPES = {"float32": torch.float32, "float16": torch.float16}
