"""Pairs of sentences as padded batches of about the same number of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from smalti.data.subwords import PAD

# Sources whose lengths differ by less may change their order: batches then differ from epoch to
# epoch, and little is padded.
JITTER = 3.0


@dataclass(frozen=True)
class PairBatch:
    """Some sentences and their translations.

    Its length is the number of the target's tokens, over which a loss is a mean; it is cut by
    sentences.

    Args:
        source: Numbers of tokens ``(rows, longest)``, filled up with padding.
        target: The same of their translations.
    """

    source: Tensor
    target: Tensor

    def __len__(self) -> int:
        return int((self.target != PAD).sum())

    def share(self, part: int, parts: int) -> PairBatch:
        """The sentences of one of several shares, in order."""
        rows = len(self.target)
        span = slice(rows * part // parts, rows * (part + 1) // parts)
        return PairBatch(self.source[span], self.target[span])

    def to(self, device: torch.device) -> PairBatch:
        """The same on a device."""
        return PairBatch(self.source.to(device), self.target.to(device))


def padded(tokens: Sequence[Sequence[int]]) -> Tensor:
    """Sequences of different lengths as one tensor ``(rows, longest)``, int64."""
    longest = max(map(len, tokens), default=0)
    made = np.full((len(tokens), longest), PAD, dtype=np.int64)
    for row, ids in enumerate(tokens):
        made[row, : len(ids)] = ids
    return torch.from_numpy(made)


def cut_by_tokens(lengths: Sequence[int], most: int) -> list[range]:
    """Runs of neighbours that take at most ``most`` tokens each when padded to their longest.

    A single sequence that is longer is alone.

    Example:
        >>> cut_by_tokens([3, 3, 4, 9], most=8)
        [range(0, 2), range(2, 3), range(3, 4)]
    """
    runs: list[range] = []
    begin = longest = 0
    for place, length in enumerate(lengths):
        longest = max(longest, length)
        if place > begin and longest * (place + 1 - begin) > most:
            runs.append(range(begin, place))
            begin, longest = place, length
    if begin < len(lengths):
        runs.append(range(begin, len(lengths)))
    return runs


class TokenPairs:
    """Sentences and their translations as numbers of tokens.

    Args:
        source: Of each sentence.
        target: Of its translation.
    """

    def __init__(self, source: Sequence[Sequence[int]], target: Sequence[Sequence[int]]) -> None:
        self.source, self.target = source, target
        self._lengths = np.array(
            [[len(one), len(other)] for one, other in zip(source, target, strict=True)],
            dtype=np.float64,
        ).reshape(-1, 2)

    def __len__(self) -> int:
        return len(self.source)

    def batch(self, rows: Sequence[int]) -> PairBatch:
        """Some of the pairs, padded."""
        return PairBatch(
            padded([self.source[row] for row in rows]), padded([self.target[row] for row in rows])
        )

    def shuffled(self, most: int, generator: torch.Generator) -> list[list[int]]:
        """The rows of the batches of an epoch: pairs of like lengths, in random order.

        Args:
            most: How many tokens a batch may have on either side, padding included.
            generator: Where random numbers come from.
        """
        noise = torch.rand(2, len(self), generator=generator).double().numpy()
        source, target = self._lengths.T
        # By the target's length, and among those of the same by the source's, both with noise.
        order = np.lexsort((source + JITTER * noise[0], np.floor(target + 2 * noise[1])))
        runs = cut_by_tokens(self._lengths[order].max(axis=1).astype(int).tolist(), most)
        chance = torch.randperm(len(runs), generator=generator).tolist()
        return [order[runs[place].start : runs[place].stop].tolist() for place in chance]

    def in_order(self, most: int) -> list[list[int]]:
        """The rows of batches for everything but training: from short to long."""
        order = np.lexsort(self._lengths.T)
        runs = cut_by_tokens(self._lengths[order].max(axis=1).astype(int).tolist(), most)
        return [order[run.start : run.stop].tolist() for run in runs]
