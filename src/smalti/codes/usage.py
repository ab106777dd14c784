"""Which codes are in use, counted over a data set instead of guessed from a batch.

Reference:
    Miller, "Note on the Bias of Information Estimates", 1955 (the correction of a plug-in
    entropy by (codes in use - 1) / 2n).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from smalti.codes.packing import checked_sizes
from smalti.errors import DataError, ShapeError, require

# One count a codeword must fit into memory.
MOST_COUNTED = 1 << 30


@dataclass(frozen=True)
class CodebookUsage:
    """What was seen of one codebook.

    Args:
        counts: How often each code occurred, int64.
    """

    counts: Tensor

    @property
    def total(self) -> int:
        """How many codes were seen."""
        return int(self.counts.sum())

    @property
    def in_use(self) -> int:
        """How many different codes occurred."""
        return int((self.counts > 0).sum())

    @property
    def dead(self) -> int:
        """How many codes never occurred."""
        return len(self.counts) - self.in_use

    @property
    def entropy_nats(self) -> float:
        """The plug-in entropy of the codes, -sum p ln p."""
        shares = self.counts.double() / max(self.total, 1)
        return float(torch.special.entr(shares).sum())

    @property
    def entropy_bits(self) -> float:
        """The plug-in entropy in bits."""
        return self.entropy_nats / math.log(2)

    @property
    def corrected_entropy_nats(self) -> float:
        """The entropy with the Miller-Madow correction; a plug-in estimate is too low."""
        return self.entropy_nats + max(self.in_use - 1, 0) / (2 * max(self.total, 1))

    @property
    def corrected_entropy_bits(self) -> float:
        """The corrected entropy in bits."""
        return self.corrected_entropy_nats / math.log(2)

    @property
    def perplexity(self) -> float:
        """How many equally likely codes would have this entropy."""
        return math.exp(self.entropy_nats)


class Usage:
    """Counts codes batch by batch; parts counted elsewhere can be merged.

    Args:
        code_sizes: How many codewords each codebook has.

    Example:
        >>> usage = Usage([4])
        >>> usage.update(torch.tensor([[0], [0], [1], [1]]))
        >>> usage[0].in_use, usage[0].entropy_bits
        (2, 1.0)
    """

    def __init__(self, code_sizes: Sequence[int]) -> None:
        self.code_sizes = checked_sizes(code_sizes)
        largest = max(self.code_sizes, default=0)
        require(
            largest <= MOST_COUNTED,
            f"expected codebooks of at most {MOST_COUNTED} codewords to count, got {largest}",
            ShapeError,
        )
        self.counts = [torch.zeros(size, dtype=torch.int64) for size in self.code_sizes]

    def update(self, codes: Tensor, mask: Tensor | None = None) -> None:
        """Count codes ``(..., num_codebooks)``, where ``mask`` ``(...)`` is True."""
        require(
            isinstance(codes, Tensor)
            and codes.dim() >= 1
            and codes.shape[-1] == len(self.code_sizes)
            and not codes.is_floating_point(),
            f"expected whole numbers (..., {len(self.code_sizes)}), got "
            f"{getattr(codes, 'dtype', type(codes).__name__)} {tuple(getattr(codes, 'shape', ()))}",
            ShapeError,
        )
        flat = codes.detach().reshape(math.prod(codes.shape[:-1]), codes.shape[-1]).cpu()
        if mask is not None:
            require(
                mask.dtype == torch.bool and mask.shape == codes.shape[:-1],
                f"expected a bool mask {tuple(codes.shape[:-1])}, got {mask.dtype} "
                f"{tuple(mask.shape)}",
                ShapeError,
            )
            flat = flat[mask.reshape(-1).cpu()]
        columns = [flat[:, book].long() for book in range(len(self.code_sizes))]
        for book, (column, size) in enumerate(zip(columns, self.code_sizes, strict=True)):
            if len(column):
                low, high = int(column.min()), int(column.max())
                require(
                    low >= 0 and high < size,
                    f"expected codes of codebook {book} in 0..{size - 1}, got {low}..{high}",
                    DataError,
                )
        # Only now: a bad codebook must not leave the others counted.
        for counts, column in zip(self.counts, columns, strict=True):
            counts.add_(torch.bincount(column, minlength=len(counts)))

    def merge(self, other: Usage) -> None:
        """Add what another counted."""
        require(
            isinstance(other, Usage) and self.code_sizes == other.code_sizes,
            f"expected counts of codebooks {self.code_sizes}, got {other!r:.80}",
            ShapeError,
        )
        for counts, more in zip(self.counts, other.counts, strict=True):
            counts.add_(more)

    def merge_over_ranks(self) -> None:
        """Add what all processes counted; each must call this once, at the same time."""
        if not (dist.is_available() and dist.is_initialized()):
            return
        device = "cuda" if dist.get_backend() == "nccl" else "cpu"
        joined = torch.cat(self.counts).to(device)
        dist.all_reduce(joined)
        self.counts = list(joined.cpu().split(list(self.code_sizes)))

    def __getitem__(self, book: int) -> CodebookUsage:
        return CodebookUsage(self.counts[book])

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def entropy_bits(self) -> float:
        """The sum of the codebooks' entropies: the rate of codes coded one by one."""
        return sum(self[book].entropy_bits for book in range(len(self)))

    @property
    def used_share(self) -> float:
        """The share of all codewords that occurred."""
        return sum(self[book].in_use for book in range(len(self))) / max(sum(self.code_sizes), 1)
