"""Which rows belong to a set, and each row's place inside or outside it, in 2 bits a row."""

from __future__ import annotations

import torch
from torch import Tensor, nn

WORD = 32


class Membership(nn.Module):
    """A bit for each row and a running total for every 32 of them.

    A table of places would take 2 to 4 bytes a row, as much as a few codes; a place is
    found from a running total and the number of set bits before the row in its word.

    Example:
        >>> members = Membership(4)
        >>> members.fill(torch.tensor([False, True, False, True]))
        >>> members(torch.tensor([1, 2, 3]))
        (tensor([ True, False,  True]), tensor([0, 1, 1]), tensor([1, 1, 2]))
    """

    bits: Tensor
    before: Tensor

    def __init__(self, rows: int) -> None:
        super().__init__()
        words = -(-rows // WORD)
        self.register_buffer("bits", torch.zeros(words, dtype=torch.int32))
        self.register_buffer("before", torch.zeros(words, dtype=torch.int32))

    def fill(self, mask: Tensor) -> None:
        """Take in the rows where ``mask`` ``(rows,)`` is True."""
        padded = torch.zeros(len(self.bits) * WORD, dtype=torch.int64)
        padded[: len(mask)] = mask
        lanes = padded.view(-1, WORD)
        words = (lanes << torch.arange(WORD)).sum(dim=1)
        # int32 has no unsigned form that all operations know; the top bit is its sign.
        self.bits.copy_(torch.where(words >= 1 << 31, words - (1 << 32), words))
        totals = lanes.sum(dim=1)
        self.before.copy_(totals.cumsum(0) - totals)

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Whether each id is a member, how many members and how many others come before it."""
        word, place = ids // WORD, ids % WORD
        bits = self.bits[word].long() & 0xFFFFFFFF
        inside = ((bits >> place) & 1).bool()
        earlier = bits & ((torch.ones_like(place) << place) - 1)
        rank = self.before[word].long() + _set_bits(earlier)
        return inside, rank, ids - rank


def _set_bits(words: Tensor) -> Tensor:
    """How many bits are set in each 32-bit word: pairs, nibbles and bytes are added up."""
    words = words - ((words >> 1) & 0x55555555)
    words = (words & 0x33333333) + ((words >> 2) & 0x33333333)
    words = (words + (words >> 4)) & 0x0F0F0F0F
    return ((words * 0x01010101) & 0xFFFFFFFF) >> 24
