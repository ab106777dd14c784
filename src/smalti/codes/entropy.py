"""How much a code says, place by place: plug-in entropies and their correction.

Reference:
    Miller, "Note on the Bias of Information Estimates", 1955. Fostiropoulos, Boehm, "Implicit
    Feature Decoupling with Depthwise Quantization", CVPR 2022, arXiv:2203.08080, section 5
    (entropies of places and codebooks).

Differs from the paper:
    The corrected entropy stands beside the plug-in one, which is too low for few samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from smalti.codes.packing import checked_sizes
from smalti.errors import DataError, ShapeError, require


class Entropies(NamedTuple):
    """Two estimates of each entropy, in nats, float64."""

    plug_in: Tensor
    """-sum p ln p of the counted shares; too low."""
    corrected: Tensor
    """With (codes in use - 1) / 2n added."""


def place_entropies(codes: Tensor, code_sizes: Sequence[int]) -> Entropies:
    """The entropy of each place and codebook over many grids.

    Args:
        codes: ``(n, ..., num_codebooks)``; the places are between the first axis and the last.
        code_sizes: How many codewords each codebook has.

    Returns:
        Entropies ``(..., num_codebooks)``.

    Example:
        >>> place_entropies(torch.tensor([[0], [0], [1], [1]]), [2]).plug_in
        tensor([0.6931], dtype=torch.float64)
    """
    sizes = checked_sizes(code_sizes)
    require(
        isinstance(codes, Tensor)
        and codes.dim() >= 2
        and codes.shape[-1] == len(sizes)
        and not codes.is_floating_point(),
        f"expected whole numbers (n, ..., {len(sizes)}), got "
        f"{getattr(codes, 'dtype', type(codes).__name__)} {tuple(getattr(codes, 'shape', ()))}",
        ShapeError,
    )
    require(len(codes) > 0, "expected at least one grid of codes, got none", DataError)
    found = [_of_codebook(codes[..., book], size) for book, size in enumerate(sizes)]
    return Entropies(
        torch.stack([one.plug_in for one in found], dim=-1),
        torch.stack([one.corrected for one in found], dim=-1),
    )


def _of_codebook(codes: Tensor, size: int) -> Entropies:
    flat = codes.reshape(len(codes), -1).long()
    low, high = int(flat.min()), int(flat.max())
    require(
        low >= 0 and high < size,
        f"expected codes in 0..{size - 1}, got {low}..{high}",
        DataError,
    )
    # Sorted columns: a run of equal codes is a count, however large the codebook.
    ordered = flat.T.sort(dim=1).values
    places, total = ordered.shape
    begins = torch.ones_like(ordered, dtype=torch.bool)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    starts = begins.flatten().nonzero()[:, 0]
    ends = torch.cat([starts[1:], starts.new_tensor([places * total])])
    shares = (ends - starts).double() / total
    owner = starts // total
    plug_in = torch.zeros(places, dtype=torch.float64, device=codes.device)
    plug_in.index_add_(0, owner, torch.special.entr(shares))
    in_use = torch.bincount(owner, minlength=places)
    corrected = plug_in + (in_use - 1).double() / (2 * total)
    shape = codes.shape[1:]
    return Entropies(plug_in.view(shape), corrected.view(shape))
