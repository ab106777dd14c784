"""What one codebook's codes say about another's, beside what chance alone would say.

Reference:
    Fostiropoulos, Boehm, "Implicit Feature Decoupling with Depthwise Quantization", CVPR
    2022, arXiv:2203.08080, section 5 and figure 3.

Differs from the paper:
    A plug-in estimate is too high, by about (K1 - 1)(K2 - 1) / 2n for codebooks of K1 and K2
    codewords and n samples. The same estimate on shuffled pairs, which share nothing, is the
    zero level; it is given beside the plug-in value, and subtracted from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from smalti.codes.packing import checked_sizes
from smalti.errors import DataError, ShapeError, require

# Up to so many numbers a sample are counted one by one; sorting takes longer.
FEW = 16


class MutualInformation(NamedTuple):
    """Estimates in nats for all pairs of codebooks: symmetric matrices, 0 on the diagonal."""

    plug_in: Tensor
    """From counted pairs; too high."""
    shuffled: Tensor
    """The zero level: what the estimate is for pairs that share nothing."""

    @property
    def corrected(self) -> Tensor:
        """The plug-in estimate above its zero level."""
        return self.plug_in - self.shuffled


def mutual_information(
    codes: Tensor, code_sizes: Sequence[int], generator: torch.Generator | None = None
) -> MutualInformation:
    """The mutual information of each pair of codebooks.

    Args:
        codes: ``(..., num_codebooks)``; all places are samples of the same pairs.
        code_sizes: How many codewords each codebook has.
        generator: Shuffles pairs for the zero level.

    Example:
        >>> same = torch.tensor([[0, 0], [1, 1]]).repeat(500, 1)
        >>> mutual_information(same, [2, 2]).plug_in[0, 1]
        tensor(0.6931, dtype=torch.float64)
    """
    sizes = checked_sizes(code_sizes)
    require(
        isinstance(codes, Tensor)
        and codes.dim() >= 2
        and codes.shape[-1] == len(sizes)
        and not codes.is_floating_point(),
        f"expected whole numbers (..., {len(sizes)}), got "
        f"{getattr(codes, 'dtype', type(codes).__name__)} {tuple(getattr(codes, 'shape', ()))}",
        ShapeError,
    )
    require(codes.numel() > 0, "expected at least one pair of codes, got none", DataError)
    columns = [_renumbered(column) for column in codes.reshape(-1, len(sizes)).cpu().T]
    plug_in = torch.zeros(len(sizes), len(sizes), dtype=torch.float64)
    shuffled = torch.zeros_like(plug_in)
    order = torch.randperm(len(columns[0]), generator=generator)
    mixed = [column[order] for column in columns]
    alone = [_entropy(column) for column in columns]
    for one in range(len(sizes)):
        for other in range(one + 1, len(sizes)):
            most = alone[one] + alone[other]
            told = (most - _joint_entropy(columns[one], columns[other])).clamp(min=0)
            by_chance = (most - _joint_entropy(columns[one], mixed[other])).clamp(min=0)
            plug_in[one, other] = plug_in[other, one] = told
            shuffled[one, other] = shuffled[other, one] = by_chance
    return MutualInformation(plug_in, shuffled)


def _renumbered(codes: Tensor) -> Tensor:
    """The codes in use by their rank, so that pairs get small numbers in any codebook."""
    ranks: Tensor = torch.unique(codes.long(), return_inverse=True)[1]
    return ranks


def _joint_entropy(one: Tensor, other: Tensor) -> Tensor:
    return _entropy(one * (int(other.max()) + 1) + other)


def _entropy(numbers: Tensor) -> Tensor:
    """From counts; where numbers are large, only those that occur are counted."""
    if int(numbers.max()) <= FEW * len(numbers):
        counts = torch.bincount(numbers)
    else:
        counts = torch.unique(numbers, return_counts=True)[1]
    entropy: Tensor = torch.special.entr(counts.double() / len(numbers)).sum()
    return entropy
