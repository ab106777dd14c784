"""The nearest codeword of every vector, exactly, without a vectors x codewords matrix.

Everything that turns vectors into codes asks here. Scores are formed block by block
in one small buffer; within a block the best group of codewords is found first, by a
reduction that the processor runs eight or sixteen lanes at a time, and only that group is
searched for its best member. Width 1 is a sorted search. Ties go to the lowest code.

With the extra ``fast`` installed, narrow vectors on a CPU use compiled loops instead
(:mod:`smalti.quantizers.native`). Inside ``torch.compile`` and ``torch.export`` the search
is one opaque operator, so that graphs stay small and memory stays bounded there too.
"""

from __future__ import annotations

import threading

import torch
from torch import Tensor

from smalti.errors import ShapeError, require
from smalti.quantizers import native

# 4 MiB of float32 scores: small enough to stay near between the product and the reduction,
# large enough that the calls in between cost nothing.
BLOCK_SCORES = 1 << 20
# Many narrow codewords lie closer together than a float32 product can tell apart.
NARROW = 4
# A product of fewer rows than this wastes the matrix unit: split the codebook instead.
LEAST_ROWS = 64


def nearest(x: Tensor, codebook: Tensor) -> Tensor:
    """The code of the nearest codeword for each vector.

    Args:
        x: Vectors ``(..., dim)``, or ``(parts, n, dim)`` for a stack of codebooks.
        codebook: ``(codebook_size, dim)``, or ``(parts, codebook_size, dim)``: part i of
            ``x`` is then compared with codebook i.

    Returns:
        Codes ``(...)`` or ``(parts, n)``, int64.

    Example:
        >>> corners = torch.tensor([[0.0, 0.0], [1.0, 1.0]])
        >>> nearest(torch.tensor([[0.1, 0.2], [0.9, 0.7]]), corners)
        tensor([0, 1])
    """
    require(
        codebook.dim() in {2, 3} and codebook.shape[-2] > 0 and x.shape[-1] == codebook.shape[-1],
        f"expected vectors (..., {codebook.shape[-1]}) for a codebook {tuple(codebook.shape)}, "
        f"got {tuple(x.shape)}",
        ShapeError,
    )
    if codebook.dim() == 3:
        require(
            x.dim() == 3 and x.shape[0] == codebook.shape[0],
            f"expected vectors ({codebook.shape[0]}, n, {codebook.shape[-1]}) for a stack of "
            f"{codebook.shape[0]} codebooks, got {tuple(x.shape)}",
            ShapeError,
        )
        return _nearest(x, codebook)
    return _nearest(x.reshape(1, -1, x.shape[-1]), codebook[None]).view(x.shape[:-1])


def best_scoring(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The codeword with the highest ``x @ weight + bias`` for each vector of a stack.

    Args:
        x: ``(parts, n, dim)``.
        weight: ``(parts, codebook_size, dim)``.
        bias: ``(parts, codebook_size)``.

    Returns:
        Codes ``(parts, n)``, int64; ties go to the lowest.
    """
    arguments = (x.detach().float(), weight.detach().float(), bias.detach().float())
    if torch.compiler.is_compiling():
        codes: Tensor = torch.ops.smalti.best_scoring(*arguments)
        return codes
    return _search_scores(*arguments)


def _nearest(x: Tensor, codebook: Tensor) -> Tensor:
    x, codebook = x.detach().float(), codebook.detach().float()
    if torch.compiler.is_compiling():
        codes: Tensor = torch.ops.smalti.nearest(x, codebook)
        return codes
    return _search_nearest(x, codebook)


def _search_nearest(x: Tensor, codebook: Tensor) -> Tensor:
    if x.shape[-1] == 1:
        return _search_sorted(x.squeeze(-1), codebook.squeeze(-1))
    if native.suits(x, codebook):
        return native.nearest(x, codebook)
    # Distances do not change when both sides move; near the origin the product
    # x.e - |e|^2/2 keeps the digits that a common offset would cancel.
    if x.shape[-1] <= NARROW:
        x, codebook = x.double(), codebook.double()
    centre = codebook.mean(dim=1, keepdim=True)
    codebook = codebook - centre
    return _search_scores(x - centre, codebook, codebook.square().sum(-1).mul_(-0.5))


def _search_sorted(x: Tensor, values: Tensor) -> Tensor:
    """Width 1: look left and right of each number in the sorted codebook."""
    order = values.argsort(dim=1, stable=True)
    values = values.gather(1, order)
    x = x.contiguous()
    right = torch.searchsorted(values, x).clamp_(max=values.shape[1] - 1)
    left = (right - 1).clamp_(min=0)
    left_value, right_value = values.gather(1, left), values.gather(1, right)
    # Equal codewords stand side by side: the first of them has the lowest code.
    left_code = order.gather(1, torch.searchsorted(values, left_value))
    right_code = order.gather(1, right)
    left_gap, right_gap = (x - left_value).abs_(), (right_value - x).abs_()
    from_left = (left_gap < right_gap) | ((left_gap == right_gap) & (left_code < right_code))
    return torch.where(from_left, left_code, right_code)


def _search_scores(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    parts, n, _ = x.shape
    codes = x.new_zeros((parts, n), dtype=torch.int64)
    if n == 0:
        return codes
    span = min(weight.shape[1], BLOCK_SCORES // LEAST_ROWS)
    with torch.autocast(x.device.type, enabled=False):
        together = max(1, BLOCK_SCORES // (span * min(n, LEAST_ROWS)))
        for first in range(0, parts, together):
            few = slice(first, first + together)
            codes[few] = _search_stack(x[few], weight[few], bias[few], span)
    return codes


def _search_stack(x: Tensor, weight: Tensor, bias: Tensor, span: int) -> Tensor:
    """Search the codebook in spans of codewords and keep the best of all spans."""
    codes = best = None
    for start in range(0, weight.shape[1], span):
        some = slice(start, start + span)
        span_codes, span_best = _search_span(x, weight[:, some], bias[:, some])
        if codes is None or best is None:
            codes, best = span_codes, span_best
        else:
            better = span_best > best
            codes = torch.where(better, span_codes + start, codes)
            best = torch.where(better, span_best, best)
    assert codes is not None  # a codebook has at least one codeword
    return codes


def _search_span(x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    (parts, n, dim), size = x.shape, weight.shape[1]
    # Groups as large as there are groups: the two searches by index are then shortest.
    group = 1 << ((size - 1).bit_length() + 1) // 2
    groups = -(-size // group)
    padded = groups * group
    columns = x.new_zeros((parts, dim, padded))
    columns[:, :, :size] = weight.transpose(1, 2)
    offsets = x.new_full((parts, 1, padded), -torch.inf)
    offsets[:, 0, :size] = bias

    rows = max(1, min(n, BLOCK_SCORES // (parts * padded)))
    buffer = _score_buffer(parts * rows * padded, x)
    codes = x.new_empty((parts, n), dtype=torch.int64)
    best = x.new_empty((parts, n))
    for start in range(0, n, rows):
        block = x[:, start : start + rows]
        count = parts * block.shape[1]
        scores = buffer[: count * padded].view(parts, -1, padded)
        torch.baddbmm(offsets, block, columns, out=scores)
        tops = scores.view(count, groups, group).amax(dim=2)
        top, which = tops.max(dim=1)
        rows_of_top = which + groups * torch.arange(count, device=x.device)
        member = scores.view(count * groups, group).index_select(0, rows_of_top).argmax(dim=1)
        codes[:, start : start + rows] = (which * group + member).view(parts, -1)
        best[:, start : start + rows] = top.view(parts, -1)
    return codes, best


def _score_buffer(size: int, like: Tensor) -> Tensor:
    """Room for scores, kept from call to call: fresh pages cost as much as filling them."""
    kept: dict[str, Tensor] = _kept.__dict__
    key = f"{like.device} {like.dtype}"
    buffer = kept.get(key)
    if buffer is None or len(buffer) < size:
        # A single row of scores may be longer than a block.
        with torch.inference_mode(False):
            # A tensor made in inference mode could not be written to outside of it.
            buffer = torch.empty(max(size, BLOCK_SCORES), dtype=like.dtype, device=like.device)
        if size <= BLOCK_SCORES:
            kept[key] = buffer
    return buffer


_kept = threading.local()


@torch.library.custom_op("smalti::nearest", mutates_args=())
def _nearest_operator(x: Tensor, codebook: Tensor) -> Tensor:
    return _search_nearest(x, codebook)


@torch.library.custom_op("smalti::best_scoring", mutates_args=())
def _best_scoring_operator(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return _search_scores(x, weight, bias)


@_nearest_operator.register_fake
def _(x: Tensor, codebook: Tensor) -> Tensor:
    del codebook
    return x.new_empty(x.shape[:2], dtype=torch.int64)


@_best_scoring_operator.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    del weight, bias
    return x.new_empty(x.shape[:2], dtype=torch.int64)
