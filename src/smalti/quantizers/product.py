"""Product quantization: a vector is cut into slices, each with a codebook of its own.

Reference:
    Jegou, Douze, Schmid, "Product Quantization for Nearest Neighbor Search", PAMI 2011,
    section II. Fostiropoulos, Boehm, "Implicit Feature Decoupling with Depthwise
    Quantization", CVPR 2022, arXiv:2203.08080, section 4 (learned inside a network).

Differs from the paper:
    A width that does not divide is padded with zeros which count neither in the loss nor in
    the distortion. ``combine="sum"`` gives each codebook a learned full-width view of the
    vector; the views start as the slices, so that it begins as the concatenation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from smalti.errors import require
from smalti.quantizers.base import (
    Quantized,
    Quantizer,
    build,
    quantizers,
)
from smalti.quantizers.settings import count, word
from smalti.quantizers.stacked import StackedQuantizer, mean_square

PartSetting = str | Mapping[str, Any] | Sequence[Quantizer | Mapping[str, Any]]


@quantizers.register("product")
class Product(Quantizer):
    """``num_codebooks`` codebooks, one for each slice of the vector.

    Args:
        dim: Width of the vectors, in and out.
        num_codebooks: Number of slices, M in the papers.
        codebook_size: Codewords of each codebook, K.
        part: What quantizes a slice: a registered name, a spec without ``dim``, or a list
            of ``num_codebooks`` quantizers whose widths add up to ``dim``. Equal parts that
            can be stacked are computed in one batched operation.
        combine: ``"concat"``, or ``"sum"`` of full-width codewords.
        reduction: Whether the parts' losses are added (``"sum"``, as published) or averaged.
        settings: Settings of the part, such as ``decay=0.9``.

    Metrics: those of the parts, averaged; distortion of the whole vector.

    Example:
        >>> layer = Product(dim=512, num_codebooks=7, codebook_size=32)
        >>> layer.width, layer(torch.randn(2, 512)).codes.shape
        (74, torch.Size([2, 7]))
    """

    example: ClassVar[Mapping[str, Any]] = {"dim": 8, "num_codebooks": 3, "codebook_size": 16}

    def __init__(
        self,
        dim: int,
        num_codebooks: int,
        codebook_size: int | None = None,
        *,
        part: PartSetting = "vector",
        combine: str = "concat",
        reduction: str = "sum",
        **settings: Any,
    ) -> None:
        dim = count("dim", dim)
        num_codebooks = count("num_codebooks", num_codebooks, most=dim)
        combine = word("combine", combine, ("concat", "sum"))
        reduction = word("reduction", reduction, ("sum", "mean"))
        width = dim if combine == "sum" else -(-dim // num_codebooks)
        last = dim if combine == "sum" else dim - (num_codebooks - 1) * width
        require(
            last > 0,
            f"{num_codebooks} slices of {width} leave none of {dim} for the last; choose a "
            "num_codebooks that divides dim, or a smaller one",
        )
        widths = [width] * (num_codebooks - 1) + [last]
        stack, parts = _make_parts(widths, codebook_size, part, settings)
        sizes = stack.code_sizes * num_codebooks if stack else _sizes(parts)
        super().__init__(dim, sizes)
        self.width = width
        self.codebook_size, self.combine, self.reduction = codebook_size, combine, reduction
        self.stack = stack
        self.parts = nn.ModuleList(parts)
        self.slices = num_codebooks
        inner = [stack] if stack else parts
        self.learns_from_vectors = combine == "sum" or any(p.learns_from_vectors for p in inner)
        if combine == "sum":
            self.views = nn.Parameter(_slice_projections(dim, num_codebooks))
        elif stack:
            with torch.no_grad():
                # Padding is zero in every vector, so it is zero in every codeword.
                stack.book.codewords[-1, :, last:] = 0.0
        else:
            given = sum(item.dim for item in parts)
            require(given == dim, f"expected parts whose widths add up to {dim}, got {given}")

    def spec(self) -> dict[str, Any]:
        """The settings as plain data; ``build`` is the inverse."""
        if self.stack is None:
            part: Any = [item.spec() for item in self._parts()]
        else:
            part = self.stack.spec()
            for name in ("dim", "parts", "codebook_size"):
                if name != "codebook_size" or self.codebook_size is not None:
                    part.pop(name)
        return {
            "quantizer": quantizers.name_of(type(self)),
            "dim": self.dim,
            "num_codebooks": self.slices,
            "codebook_size": self.codebook_size,
            "part": part,
            "combine": self.combine,
            "reduction": self.reduction,
        }

    @property
    def codebook(self) -> Tensor:
        """The codewords ``(num_codebooks, codebook_size, width)`` of stacked parts."""
        require(self.stack is not None, "these parts have no common codebook; look at .parts")
        assert self.stack is not None  # for the type checker
        return self.stack.book.codewords

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Quantized:
        """Quantize vectors ``(..., dim)``; see :class:`Quantizer`."""
        flat = self.checked(x, mask).reshape(-1, self.dim)
        valid = None if mask is None else mask.reshape(-1)
        if self.stack is not None:
            out = self.stack.quantize(self._slice(flat), valid)
            vectors, codes = self._combine(out.vectors), out.codes.t()
            losses, metrics = self._over_real_coordinates(out.loss), out.metrics
        else:
            outs = [
                item(piece, valid)
                for item, piece in zip(self._parts(), self._pieces(flat), strict=True)
            ]
            vectors = self._join([out.vectors for out in outs])
            codes = torch.cat([out.codes for out in outs], dim=-1)
            losses = torch.stack([out.loss for out in outs])
            metrics = _average([out.metrics for out in outs])
        error = (flat - vectors).detach().unsqueeze(0)
        return Quantized(
            vectors=vectors.view(x.shape).to(x.dtype),
            codes=codes.reshape(*x.shape[:-1], self.num_codebooks),
            loss=losses.sum() if self.reduction == "sum" else losses.mean(),
            metrics={**metrics, "distortion": mean_square(error, valid)[0]},
        )

    def encode(self, x: Tensor) -> Tensor:
        """The codes ``(..., num_codebooks)`` of vectors ``(..., dim)``."""
        flat = self.checked(x).reshape(-1, self.dim)
        if self.stack is not None:
            codes = self.stack.choose(self._slice(flat)).t()
        else:
            pieces = zip(self._parts(), self._pieces(flat), strict=True)
            codes = torch.cat([item.encode(piece) for item, piece in pieces], dim=-1)
        return codes.reshape(*x.shape[:-1], self.num_codebooks)

    def decode(self, codes: Tensor) -> Tensor:
        """The vectors ``(..., dim)`` of codes ``(..., num_codebooks)``."""
        flat = self.checked_codes(codes).reshape(-1, self.num_codebooks)
        if self.stack is not None:
            vectors = self._combine(self.stack.look_up(flat.t().contiguous()))
        else:
            counts = [item.num_codebooks for item in self._parts()]
            pieces = zip(self._parts(), flat.split(counts, dim=-1), strict=True)
            vectors = self._join([item.decode(piece) for item, piece in pieces])
        return vectors.view(*codes.shape[:-1], self.dim)

    def _start(self, x: Tensor) -> None:
        if self.stack is not None:
            self.stack.begin(self._slice(x).detach(), None, anew=True)
            return
        for item, piece in zip(self._parts(), self._pieces(x), strict=True):
            item.start_from(piece.detach())

    def _parts(self) -> list[Quantizer]:
        return [item for item in self.parts if isinstance(item, Quantizer)]

    def _slice(self, flat: Tensor) -> Tensor:
        """``(n, dim)`` as a stack ``(num_codebooks, n, width)``."""
        if self.combine == "sum":
            return torch.einsum("nd,mde->mne", flat, self.views)
        missing = self.slices * self.width - self.dim
        if missing:
            flat = functional.pad(flat, (0, missing))
        return flat.reshape(flat.shape[0], self.slices, self.width).transpose(0, 1)

    def _combine(self, stack: Tensor) -> Tensor:
        if self.combine == "sum":
            return stack.sum(dim=0)
        joined = stack.transpose(0, 1).reshape(stack.shape[1], self.slices * self.width)
        return joined[:, : self.dim]

    def _pieces(self, flat: Tensor) -> list[Tensor]:
        if self.combine == "sum":
            return list(self._slice(flat))
        widths = [item.dim for item in self._parts()]
        return list(flat.split(widths, dim=-1))

    def _join(self, pieces: list[Tensor]) -> Tensor:
        if self.combine == "sum":
            return torch.stack(pieces).sum(dim=0)
        return torch.cat(pieces, dim=-1)

    def _over_real_coordinates(self, losses: Tensor) -> Tensor:
        """Undo, part by part, that a mean over padded coordinates is too small."""
        starts = self.width * torch.arange(self.slices, device=losses.device)
        real = (self.dim - starts).clamp(1, self.width)
        padded = self.combine == "concat" and self.stack is not None
        if padded and self.stack is not None and self.stack.averages_coordinates:
            return losses * (self.width / real)
        return losses


def _make_parts(
    widths: Sequence[int], codebook_size: int | None, part: Any, settings: dict[str, Any]
) -> tuple[StackedQuantizer | None, list[Quantizer]]:
    number = len(widths)
    if isinstance(part, (list, tuple, nn.ModuleList)):
        members: list[Any] = list(part)
        given = [item if isinstance(item, Quantizer) else build(item) for item in members]
        require(
            len({id(item) for item in given}) == number and not settings,
            f"expected {number} different parts and no further settings, got {len(given)} parts "
            f"and {sorted(settings)}",
        )
        return None, _with_codes(given)
    spec = part_spec(part, settings, codebook_size)
    if issubclass(quantizers.get(spec["quantizer"]), StackedQuantizer):
        stack = build({**spec, "dim": widths[0], "parts": number})
        assert isinstance(stack, StackedQuantizer)
        return stack, []
    return None, _with_codes([build({**spec, "dim": width}) for width in widths])


def part_spec(part: Any, settings: dict[str, Any], codebook_size: int | None) -> dict[str, Any]:
    """The spec, without ``dim``, of a part given as a name or as a mapping."""
    spec: dict[str, Any] = {"quantizer": part} if isinstance(part, str) else part
    require(
        isinstance(spec, Mapping) and "quantizer" in spec,
        f"expected a part as a registered name or a spec with the key 'quantizer', got {part!r}",
    )
    size = {} if codebook_size is None else {"codebook_size": codebook_size}
    return {**spec, **settings, **size}


def _with_codes(parts: list[Quantizer]) -> list[Quantizer]:
    require(all(item.code_sizes for item in parts), "a part without codes can't be combined")
    return parts


def _sizes(parts: Sequence[Quantizer]) -> tuple[int, ...]:
    return tuple(size for item in parts for size in item.code_sizes)


def _slice_projections(dim: int, num_codebooks: int) -> Tensor:
    """Projections ``(num_codebooks, dim, dim)`` onto the slices; they add up to the identity."""
    owner = torch.arange(dim) * num_codebooks // dim
    return torch.stack([torch.diag((owner == index).float()) for index in range(num_codebooks)])


def _average(metrics: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    shared = [name for name in metrics[0] if all(name in item for item in metrics)]
    return {name: torch.stack([item[name] for item in metrics]).mean() for name in shared}
