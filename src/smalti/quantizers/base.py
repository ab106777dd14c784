"""The contract that every quantizer keeps: vectors in, codes and vectors out."""

from __future__ import annotations

import dataclasses
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from smalti.errors import ConfigError, DataError, ShapeError, require
from smalti.quantizers.sampling import collect
from smalti.registry import Registry


class Quantized(NamedTuple):
    """What a quantizer returns, always these four fields."""

    vectors: Tensor
    """``(..., dim)`` in the input's dtype; gradients reach the input."""
    codes: Tensor
    """``(..., num_codebooks)`` int64; the last axis is there even for one codebook."""
    loss: Tensor
    """A scalar to minimise, already weighted; zero where there is nothing to minimise."""
    metrics: dict[str, Tensor]
    """Detached scalars to log; each method says which."""


class Quantizer(nn.Module, ABC):
    """Turns vectors ``(..., dim)`` into codes ``(..., num_codebooks)`` and back.

    A constructor stores each argument under its own name; ``spec`` and ``build`` rely on
    it. Parameters and statistics stay float32 whatever a model is cast to, because moving
    averages with a decay near 1 are lost in half precision.

    Args:
        dim: Width of the vectors, in and out.
        code_sizes: How many codewords each codebook has.
    """

    example: ClassVar[Mapping[str, Any]] = {"dim": 8, "codebook_size": 16}
    """Settings of a small instance, for the contract suite and for listings."""

    def __init__(self, dim: int, code_sizes: Sequence[int]) -> None:
        super().__init__()
        require(is_count(dim), f"dim must be a whole number >= 1, got {dim!r}")
        for size in code_sizes:
            require(is_count(size, 2), f"a codebook needs >= 2 codewords, got {size!r}")
        self.dim = dim
        self.code_sizes = tuple(code_sizes)
        self.frozen = False
        # Whether parameters learn through ``vectors``, not only through loss and averages.
        self.learns_from_vectors = False

    @property
    def num_codebooks(self) -> int:
        """How many codes a vector has."""
        return len(self.code_sizes)

    @property
    def bits_per_vector(self) -> float:
        """The rate when all codes are equally likely: an upper bound of every real rate."""
        return sum(math.log2(size) for size in self.code_sizes)

    @abstractmethod
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Quantized:
        """Quantize; in training also learn.

        Args:
            x: Vectors ``(..., dim)``.
            mask: ``(...)`` bool, False where a position is padding and counts for nothing.
        """

    @abstractmethod
    def encode(self, x: Tensor) -> Tensor:
        """The codes ``(..., num_codebooks)`` of vectors ``(..., dim)``, without noise."""

    @abstractmethod
    def decode(self, codes: Tensor) -> Tensor:
        """The vectors ``(..., dim)`` that codes ``(..., num_codebooks)`` stand for."""

    def start_from(self, batches: Tensor | Iterable[Tensor]) -> Self:
        """Start the codebooks from data: one tensor, or a stream of them.

        Without this call a quantizer that starts from data does so from the first
        batch it is trained on. Where nothing starts from data this changes nothing.
        """
        stream = [batches] if isinstance(batches, Tensor) else batches
        width = max((2, *self.code_sizes))
        self._start(collect((self.checked(batch) for batch in stream), self.dim, width))
        return self

    def _start(self, x: Tensor) -> None:
        """Start from the sample ``x`` ``(n, dim)``; methods with codebooks override this."""

    def spec(self) -> dict[str, Any]:
        """The settings as plain data; ``build`` is the inverse."""
        names = setting_names(type(self))
        settings = {name: as_plain(getattr(self, name)) for name in names}
        return {"quantizer": quantizers.name_of(type(self)), **settings}

    def freeze(self) -> Self:
        """Stop all learning here: codes stay what they are, also while a model trains."""
        self.requires_grad_(False)
        self.eval()
        for part in self.modules():
            if isinstance(part, Quantizer):
                part.frozen = True
        return self

    def unfreeze(self) -> Self:
        """Undo ``freeze``; the next ``train()`` lets the codebooks learn again."""
        for part in self.modules():
            if isinstance(part, Quantizer):
                part.frozen = False
        self.requires_grad_(True)
        return self

    def train(self, mode: bool = True) -> Self:
        """Set training mode; a frozen quantizer stays in evaluation mode."""
        return super().train(mode and not self.frozen)

    def checked(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """``x`` as float32 with padding set to zero, or an error that says what is wrong."""
        require(
            isinstance(x, Tensor) and x.is_floating_point(),
            f"expected a tensor of real numbers, got {getattr(x, 'dtype', type(x).__name__)}; "
            "convert it with .float()",
            ShapeError,
        )
        require(
            x.dim() >= 1 and x.shape[-1] == self.dim,
            f"expected (..., {self.dim}), got {tuple(x.shape)}; the last axis is the vector "
            "(for images with channels first use ChannelsFirst)",
            ShapeError,
        )
        if mask is not None:
            require(
                mask.dtype == torch.bool and mask.shape == x.shape[:-1],
                f"expected a bool mask {tuple(x.shape[:-1])}, got {mask.dtype} {tuple(mask.shape)}",
                ShapeError,
            )
            x = x.masked_fill(~mask.unsqueeze(-1), 0.0)
        if not torch.compiler.is_compiling():
            _require_finite(x)
        return x.float()

    def checked_codes(self, codes: Tensor) -> Tensor:
        """``codes`` as int64, or an error that says what is wrong."""
        require(
            isinstance(codes, Tensor) and not codes.is_floating_point() and codes.dim() >= 1,
            f"expected a tensor of whole numbers, got {getattr(codes, 'dtype', type(codes))}",
            ShapeError,
        )
        require(
            codes.shape[-1] == self.num_codebooks,
            f"expected codes (..., {self.num_codebooks}), got {tuple(codes.shape)}",
            ShapeError,
        )
        codes = codes.long()
        if not torch.compiler.is_compiling() and codes.numel():
            lowest, highest = codes.reshape(-1, self.num_codebooks).aminmax(dim=0)
            for book, size in enumerate(self.code_sizes):
                low, high = int(lowest[book]), int(highest[book])
                require(
                    low >= 0 and high < size,
                    f"expected codes of codebook {book} in 0..{size - 1}, got {low}..{high}",
                    DataError,
                )
        return codes

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        def in_float32(tensor: Tensor) -> Tensor:
            made = fn(tensor)
            if tensor.dtype == torch.float32 and made.dtype != torch.float32:
                return tensor.to(made.device)
            return made

        super()._apply(in_float32, recurse)  # type: ignore[no-untyped-call]
        return self

    def extra_repr(self) -> str:
        """The settings, as ``print`` shows them."""
        settings = self.spec()
        return ", ".join(f"{key}={value}" for key, value in settings.items() if key != "quantizer")


quantizers: Registry[Quantizer] = Registry("quantizer")


def build(spec: Mapping[str, Any] | str, **settings: Any) -> Quantizer:
    """Make a quantizer from a spec, or from a registered name and settings.

    Example:
        >>> build("finite_scalar", dim=3, levels=(8, 5, 5)).code_sizes
        (8, 5, 5)
    """
    if isinstance(spec, str):
        spec = {"quantizer": spec, **settings}
    require("quantizer" in spec, f"expected a spec with the key 'quantizer', got {dict(spec)}")
    kind = quantizers.get(spec["quantizer"])
    given = {key: value for key, value in spec.items() if key != "quantizer"}
    known = setting_names(kind)
    unknown = sorted(set(given) - set(known))
    require(
        not unknown or takes_any_setting(kind),
        f"{spec['quantizer']} has no setting {', '.join(unknown)}; it has: {', '.join(known)}",
    )
    try:
        return kind(**given)
    except TypeError as error:
        raise ConfigError(f"can't build {spec['quantizer']}: {error}") from error


def setting_names(kind: type[Quantizer]) -> list[str]:
    """The names of the settings that a class takes."""
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    return [item.name for item in parameters if item.kind is not item.VAR_KEYWORD]


def takes_any_setting(kind: type[Quantizer]) -> bool:
    """Whether a class hands further settings on to its parts."""
    parameters = inspect.signature(kind.__init__).parameters.values()
    return any(item.kind is item.VAR_KEYWORD for item in parameters)


def is_count(value: object, least: int = 1) -> bool:
    """Whether ``value`` is a whole number of at least ``least``."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def as_plain(value: Any) -> Any:
    """A setting as JSON data: strategies become mappings, quantizers their specs."""
    if isinstance(value, Quantizer):
        return value.spec()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"kind": getattr(value, "kind", ""), **dataclasses.asdict(value)}
    if isinstance(value, (list, tuple, nn.ModuleList)):
        return [as_plain(item) for item in value]
    return value


def _require_finite(x: Tensor) -> None:
    # One pass without a temporary: a sum is finite only if all its terms are. A sum
    # may overflow on finite numbers, so a bad one is looked at more closely.
    if bool(x.detach().sum(dtype=torch.float32).isfinite()):
        return
    bad = ~x.detach().isfinite()
    count = int(bad.sum())
    require(
        count == 0,
        f"expected finite vectors, got {count} of {x.numel()} numbers NaN or infinite; "
        "nothing was learned from this batch: look for the fault before the quantizer",
        DataError,
    )
