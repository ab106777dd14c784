"""Weighted k-means on a stack of parts at once, the ground of all coded tables."""

from __future__ import annotations

import torch
from torch import Tensor

from smalti.quantizers.nearest import nearest
from smalti.quantizers.scatter import flat_codes

# A step that gains less than this share of the distortion is the last one.
WORTHWHILE = 1e-4


def cluster(
    x: Tensor,
    weights: Tensor,
    size: int,
    iterations: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Codewords ``(parts, size, width)`` and codes ``(parts, n)`` of ``x`` ``(parts, n, width)``.

    Lloyd's iterations from a weighted draw of the vectors. A codeword that nobody chose
    moves to a vector that is badly served, so that all of them end in use where there are
    enough distinct vectors.

    Args:
        x: Vectors, part by part.
        weights: ``(n,)`` how much each vector counts, the same in every part.
        size: How many codewords.
        iterations: The most steps that are taken.
        generator: Where random choices come from.
    """
    parts, n, width = x.shape
    if n <= size:
        codewords = torch.cat([x, x[:, :1].expand(parts, size - n, width)], dim=1)
        return codewords.contiguous(), torch.arange(n).expand(parts, n)
    picks = torch.multinomial(weights.expand(parts, n), size, generator=generator)
    codewords = x.gather(1, picks.unsqueeze(-1).expand(-1, -1, width))
    before = float("inf")
    for _ in range(iterations):
        codes = nearest(x, codewords)
        codewords, used = means(x, codes, weights, codewords)
        errors = weights * (x - decode(codewords, codes)).square().sum(-1)
        after = float(errors.sum())
        _revive(x, codewords, used, errors, generator)
        if bool(used.all()) and before - after < WORTHWHILE * after:
            break
        before = after
    return codewords, nearest(x, codewords)


def means(x: Tensor, codes: Tensor, weights: Tensor, old: Tensor) -> tuple[Tensor, Tensor]:
    """The weighted mean of each codeword's vectors; one without vectors stays as it was.

    Returns:
        Codewords ``(parts, size, width)``, and ``(parts, size)`` whether each was chosen.
    """
    parts, size, width = old.shape
    places = flat_codes(codes, size)
    flat = (x * weights[:, None]).reshape(-1, width)
    sums = x.new_zeros(parts * size, width).index_add_(0, places, flat)
    totals = x.new_zeros(parts * size).index_add_(0, places, weights.repeat(parts))
    used = totals > 0
    made = torch.where(used[:, None], sums / totals.clamp(min=1e-30)[:, None], old.flatten(0, 1))
    return made.view(parts, size, width), used.view(parts, size)


def decode(codewords: Tensor, codes: Tensor) -> Tensor:
    """The codewords ``(parts, n, width)`` that codes ``(parts, n)`` stand for."""
    parts, size, width = codewords.shape
    return codewords.view(-1, width)[flat_codes(codes, size)].view(parts, -1, width)


def _revive(
    x: Tensor, codewords: Tensor, used: Tensor, errors: Tensor, generator: torch.Generator
) -> None:
    """Move codewords without vectors to vectors drawn by how badly they are served."""
    for part in torch.nonzero(~used.all(dim=1)).flatten().tolist():
        dead = torch.nonzero(~used[part]).flatten()
        chances = errors[part] + 1e-30
        picks = torch.multinomial(chances, len(dead), generator=generator)
        codewords[part, dead] = x[part, picks]
