"""The contract that every quantizer keeps: vectors in, codes and vectors out."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from smalti.errors import require
from smalti.quantizers.border import as_stream, checked_codes, checked_vectors
from smalti.quantizers.codebook import Codebook
from smalti.quantizers.sampling import collect
from smalti.quantizers.settings import count
from smalti.registry import Registry
from smalti.specs import build_from, spec_of

# A code is one 64-bit integer; its sign bit stays free.
MOST_CODEWORDS = 2**62


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

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        for name in ("forward", "encode", "decode", "sample"):
            if name in cls.__dict__:
                setattr(cls, name, _in_full_precision(cls.__dict__[name]))

    def __init__(self, dim: int, code_sizes: Sequence[int]) -> None:
        super().__init__()
        self.dim = count("dim", dim)
        self.code_sizes = tuple(
            count("the number of codewords", size, least=2, most=MOST_CODEWORDS)
            for size in code_sizes
        )
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
        require(not self.frozen, "a frozen quantizer can't start anew; call unfreeze() first")
        stream = as_stream(batches)
        width = max((2, *self.code_sizes))
        self._start(collect((self.checked(batch) for batch in stream), self.dim, width))
        return self

    def _start(self, x: Tensor) -> None:
        """Start from the sample ``x`` ``(n, dim)``; methods with codebooks override this."""

    def spec(self) -> dict[str, Any]:
        """The settings as plain data; ``build`` is the inverse."""
        return spec_of(self, quantizers, "quantizer")

    def freeze(self) -> Self:
        """Stop all learning here: codes stay what they are, also while a model trains."""
        self.requires_grad_(False)
        self.zero_grad()
        self.eval()
        self._set_frozen(True)
        return self

    def unfreeze(self) -> Self:
        """Undo ``freeze``; the next ``train()`` lets the codebooks learn again."""
        self._set_frozen(False)
        self.requires_grad_(True)
        return self

    def _set_frozen(self, frozen: bool) -> None:
        for part in self.modules():
            if isinstance(part, Quantizer):
                part.frozen = frozen
            elif isinstance(part, Codebook):
                part.freeze(frozen)

    def train(self, mode: bool = True) -> Self:
        """Set training mode; a frozen quantizer stays in evaluation mode."""
        return super().train(mode and not self.frozen)

    def checked(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """``x`` as float32 with padding set to zero, or an error that says what is wrong."""
        return checked_vectors(x, mask, self.dim)

    def checked_codes(self, codes: Tensor) -> Tensor:
        """``codes`` as int64, or an error that says what is wrong."""
        return checked_codes(codes, self.code_sizes)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        def in_float32(tensor: Tensor) -> Tensor:
            made = fn(tensor)
            if tensor.dtype == torch.float32 and made.dtype != torch.float32:
                return tensor.to(made.device)
            return made

        # Module._apply has no annotations in torch.
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
    built: Quantizer = build_from(quantizers, "quantizer", spec, settings)
    return built


def _in_full_precision(method: Callable[..., Any]) -> Callable[..., Any]:
    """Codes must not depend on the precision that autocast chose for the layers around."""

    @functools.wraps(method)
    def run(self: Quantizer, x: Any, *arguments: Any, **settings: Any) -> Any:
        device = x.device.type if isinstance(x, Tensor) else "cpu"
        if not torch.is_autocast_enabled(device):
            return method(self, x, *arguments, **settings)
        with torch.autocast(device, enabled=False):
            return method(self, x, *arguments, **settings)

    return run
