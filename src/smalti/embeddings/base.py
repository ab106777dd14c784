"""The contract of compressed embedding tables, and of the methods that make them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from smalti.embeddings.border import checked_counts, checked_ids, checked_metric, checked_table
from smalti.embeddings.saved_form import as_saved, to_saved
from smalti.embeddings.size import Size
from smalti.errors import ConfigError, ShapeError, require
from smalti.quantizers.settings import count
from smalti.registry import Registry
from smalti.specs import build_from, setting_names, spec_of

# A decoded table is never needed whole: rows are decoded so many at a time.
BLOCK_ROWS = 4096


class CompressedEmbedding(nn.Module, ABC):
    """Takes the place of ``nn.Embedding``: the same ids in, nearly the same vectors out.

    What is saved is what is counted and what is used: a tensor that ``store`` declares
    narrower than float32 is rounded to that type wherever it is read, so that a saved and
    loaded table gives the same bits, also after training. Outputs follow the type that the
    model was cast to.

    Args:
        rows: How many vectors the table has.
        dim: Width of a vector.
    """

    holds: ClassVar[Mapping[str, str]] = {}
    """For each tensor: which part of :class:`Size` it belongs to."""

    def __init__(self, rows: int, dim: int) -> None:
        super().__init__()
        self.rows = count("rows", rows)
        self.dim = count("dim", dim)
        self.stored: dict[str, torch.dtype] = {}
        self.output_dtype = torch.float32

    def store(self, name: str, tensor: Tensor, dtype: torch.dtype = torch.float32) -> None:
        """Register a trainable tensor that is saved, and rounded in use, as ``dtype``."""
        self.stored[name] = dtype
        self.register_parameter(name, nn.Parameter(tensor.to(torch.float32)))

    def read(self, name: str) -> Tensor:
        """A stored tensor as it will be saved; gradients pass the rounding."""
        return as_saved(getattr(self, name), self.stored[name]).to(self.output_dtype)

    @abstractmethod
    def lookup(self, ids: Tensor) -> Tensor:
        """The vectors ``(n, dim)`` of ids ``(n,)`` that are known to be in range."""

    def forward(self, ids: Tensor) -> Tensor:
        """The vectors ``(..., dim)`` of ids ``(...)``."""
        flat = checked_ids(ids, self.rows).reshape(-1)
        return self.lookup(flat).to(self.output_dtype).view(*ids.shape, self.dim)

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores ``(..., rows)`` of hidden states ``(..., dim)``: a tied output layer."""
        require(
            hidden.shape[-1] == self.dim,
            f"expected hidden states (..., {self.dim}), got {tuple(hidden.shape)}",
            ShapeError,
        )
        flat = hidden.reshape(-1, self.dim)
        return self.score(flat).to(hidden.dtype).view(*hidden.shape[:-1], self.rows)

    def score(self, hidden: Tensor) -> Tensor:
        """Scores ``(n, rows)`` of ``(n, dim)``; decodes the rows a block at a time."""
        blocks = [
            hidden @ self.lookup(ids).to(hidden.dtype).T
            for ids in torch.arange(self.rows, device=hidden.device).split(BLOCK_ROWS)
        ]
        return torch.cat(blocks, dim=-1)

    @torch.no_grad()
    def dense(self) -> Tensor:
        """The whole table ``(rows, dim)`` as ``forward`` gives it."""
        device = next(iter(self.state_dict().values())).device
        blocks = torch.arange(self.rows, device=device).split(BLOCK_ROWS)
        return torch.cat([self.lookup(ids).to(self.output_dtype) for ids in blocks])

    def attach(self, kept: CompressedEmbedding) -> None:
        """Learn of the rows that are kept beside this table; most tables need no more."""
        del kept

    def size(self) -> Size:
        """Bytes of the tensors that are saved."""
        total = Size()
        for name, tensor in self.state_dict().items():
            owner, _, leaf = name.rpartition(".")
            module = self.get_submodule(owner)
            part = getattr(module, "holds", {}).get(leaf, "other")
            total += Size(**{part: tensor.numel() * tensor.element_size()})
        return total

    def spec(self) -> dict[str, Any]:
        """What ``build_table`` needs to make an empty table of the same shape."""
        return spec_of(self, tables, "table")

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name, dtype in self.stored.items():
            key = prefix + name
            if not keep_vars:
                destination[key] = to_saved(destination[key], dtype)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *others: Any, **more: Any
    ) -> None:
        for name, dtype in self.stored.items():
            # Whole numbers of a file that are put in place as they are could not learn.
            if not dtype.is_floating_point and prefix + name in state_dict:
                state_dict[prefix + name] = state_dict[prefix + name].to(torch.float32)
        super()._load_from_state_dict(state_dict, prefix, *others, **more)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        # Module._apply has no annotations in torch.
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.output_dtype = fn(torch.empty(0, dtype=self.output_dtype)).dtype
        return self

    def extra_repr(self) -> str:
        """The settings and the bytes, as ``print`` shows them."""
        return f"{self.rows}, {self.dim}, bytes={self.size().total}"


class Compressor(ABC):
    """A method's settings; ``fit`` makes a smaller table of a given one.

    A constructor stores each argument under its own name; ``spec`` and
    ``build_compressor`` rely on it.
    """

    example: ClassVar[Mapping[str, Any]] = {}
    """Settings that suit a small table, for the contract suite."""

    def fit(
        self,
        table: Tensor,
        *,
        counts: Tensor | None = None,
        metric: Tensor | None = None,
        special: Sequence[int] = (),
        generator: torch.Generator | None = None,
    ) -> CompressedEmbedding:
        """Learn a smaller table.

        Args:
            table: ``(rows, dim)`` floating point.
            counts: ``(rows,)`` how often each row is used; common rows are kept closer.
            metric: ``(dim, dim)``, symmetric: an error ``e`` of a row costs ``e @ metric @ e``.
                A method for which ``heeds_metric`` is False counts squared errors all the same.
            special: Rows that must survive, such as padding and unknown.
            generator: Where random choices come from.
        """
        table = checked_table(table)
        cost = checked_metric(metric, table.shape[1])
        weights = checked_counts(counts, len(table))
        special = sorted({int(row) for row in special})
        require(
            all(0 <= row < len(table) for row in special),
            f"expected special rows in 0..{len(table) - 1}, got {special}",
        )
        if generator is None:
            generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            method = self if cost is None else self.under(cost)
            return method._fit(table, weights, special, generator)

    @abstractmethod
    def _fit(
        self,
        table: Tensor,
        counts: Tensor | None,
        special: list[int],
        generator: torch.Generator,
    ) -> CompressedEmbedding:
        """``fit`` on a checked float32 table; runs without gradients."""

    def fit_beside(
        self,
        table: Tensor,
        kept: CompressedEmbedding,
        counts: Tensor | None,
        generator: torch.Generator,
    ) -> CompressedEmbedding:
        """Fit the rows that are left when others are kept; most methods need no more."""
        del kept
        return self._fit(table, counts, [], generator)

    @abstractmethod
    def outline(self, rows: int, dim: int) -> CompressedEmbedding:
        """An empty table of the shape that ``fit`` makes."""

    def expected_size(
        self, rows: int, dim: int, *, counts: Tensor | None = None, special: Sequence[int] = ()
    ) -> Size:
        """The bytes that ``fit`` will need, without fitting."""
        del counts, special
        with torch.device("meta"):
            return self.outline(rows, dim).size()

    def expected_size_beside(
        self, rows: int, dim: int, kept_rows: int, counts: Tensor | None
    ) -> Size:
        """The bytes of the rows that are left when ``kept_rows`` others are kept."""
        del kept_rows
        return self.expected_size(rows, dim, counts=counts)

    @property
    def heeds_metric(self) -> bool:
        """Whether it matters to this method what errors cost."""
        return False

    def under(self, metric: Tensor) -> Compressor:
        """This compressor once it knows what errors cost."""
        del metric
        return self

    def prepared(self, table: Tensor) -> Compressor:
        """This compressor after a look at the whole table, before rows are set aside."""
        del table
        return self

    def start(self, rows: int, dim: int) -> CompressedEmbedding:
        """An untrained table, to be learned with a task."""
        del rows, dim
        able = [name for name, kind in compressors if kind.start is not Compressor.start]
        raise ConfigError(
            f"{compressors.name_of(type(self))} needs a finished table: call fit(table); "
            f"those that learn with a task are: {', '.join(able)}"
        )

    def spec(self) -> dict[str, Any]:
        """The settings as plain data; ``build_compressor`` is the inverse."""
        return spec_of(self, compressors, "compressor")

    def __repr__(self) -> str:
        settings = ", ".join(f"{k}={getattr(self, k)!r}" for k in setting_names(type(self)))
        return f"{type(self).__name__}({settings})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Compressor) and self.spec() == other.spec()

    def __hash__(self) -> int:
        return hash(repr(self))


tables: Registry[CompressedEmbedding] = Registry("table")
compressors: Registry[Compressor] = Registry("compressor")


def build_compressor(spec: Mapping[str, Any] | str | Compressor, **settings: Any) -> Compressor:
    """Make a compressor from a spec, or from a registered name and settings.

    Example:
        >>> build_compressor("integer", bits=4)
        Integer(bits=4, group=None)
    """
    if isinstance(spec, Compressor):
        return spec
    built: Compressor = build_from(compressors, "compressor", spec, settings)
    return built


def build_table(spec: Mapping[str, Any] | CompressedEmbedding) -> CompressedEmbedding:
    """Make an empty table of the shape that ``spec`` describes, to load tensors into."""
    if isinstance(spec, CompressedEmbedding):
        return spec
    built: CompressedEmbedding = build_from(tables, "table", spec, {})
    return built
