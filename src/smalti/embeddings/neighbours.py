"""The nearest rows by cosine, found exactly, and the weights that rebuild a row from them."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

# Numbers of a block of scores: 64 MB keep matrix products large and memory small.
BLOCK_SCORES = 1 << 24
# So many more than wanted are looked at again in float64.
SPARE = 3
# Numbers of the neighbours that are gathered at a time: few enough for little memory, and
# enough that threads are not woken for nothing.
BLOCK_GATHERED = 1 << 20
# Rows whose neighbours are compared at a time.
BLOCK_SHARED = 4096
# Without a constraint, keeps the weights of nearly equal neighbours small; costs no cosine.
RIDGE = 1e-6


def units(rows: Tensor) -> Tensor:
    """Rows of length 1; those without a length stay zero."""
    lengths = rows.norm(dim=1, keepdim=True)
    return rows / torch.where(lengths == 0, 1.0, lengths)


def nearest_by_cosine(queries: Tensor, sources: Tensor, neighbours: int) -> Tensor:
    """The ids ``(n, neighbours)`` of the sources nearest to each query, the nearest first.

    Scores are computed in float32 and the best of them again in float64. Where the error that
    float32 may have could hide a better one, all sources are compared in float64.
    """
    candidates = min(neighbours + SPARE, len(sources))
    rough = units(sources)
    # The most that the score of two rounded unit vectors can be off, summed in any order.
    slack = (sources.shape[1] + 4) * 2.0**-24
    found = []
    for block in queries.split(max(1, BLOCK_SCORES // len(sources))):
        wanted = units(block.double())
        scores, ids = (wanted.float() @ rough.T).topk(candidates)
        ids = ids.sort(dim=1).values
        again, order = _scores(wanted, sources, ids).sort(dim=1, descending=True, stable=True)
        ids = ids.gather(1, order)[:, :neighbours]
        if candidates < len(sources):
            unsure = again[:, neighbours - 1] <= scores[:, -1].double() + slack
            if unsure.any():
                ids[unsure] = _all_compared(wanted[unsure], sources, neighbours)
        found.append(ids)
    return torch.cat(found)


def _scores(wanted: Tensor, sources: Tensor, ids: Tensor) -> Tensor:
    """Cosines ``(n, candidates)`` with some sources; equal sources get equal bits."""
    parts = []
    for some, rows in _blocks(ids, wanted, sources):
        near = functional.embedding(some, sources).double()
        lengths = near.norm(dim=-1)
        along = (near * rows.unsqueeze(1)).sum(dim=-1)
        parts.append(along / torch.where(lengths == 0, 1.0, lengths))
    return torch.cat(parts)


def _all_compared(wanted: Tensor, sources: Tensor, neighbours: int) -> Tensor:
    exact = units(sources.double())
    parts = [
        (rows @ exact.T).sort(dim=1, descending=True, stable=True).indices[:, :neighbours]
        for rows in wanted.split(max(1, BLOCK_SCORES // (4 * len(sources))))
    ]
    return torch.cat(parts)


def barycentre_weights(
    rows: Tensor, sources: Tensor, ids: Tensor, regularisation: float = 1e-3
) -> Tensor:
    """Weights ``(n, neighbours)`` float64 that sum to one and rebuild each row best.

    They solve C a = 1 with C_jl = (y - x_j).(y - x_l), then are divided by their sum. C is
    made regular with ``regularisation`` times its trace on the diagonal.

    Args:
        rows: ``(n, dim)``, y.
        sources: ``(sources, dim)``, x.
        ids: ``(n, neighbours)``, which sources belong to each row.
        regularisation: How far equal neighbours share their weight.
    """
    products = []
    for some, targets in _blocks(ids, rows, sources):
        apart = functional.embedding(some, sources).sub_(targets.unsqueeze(1))
        products.append(apart @ apart.mT)
    gram = torch.cat(products).double()
    weights = _solved(gram, torch.ones_like(gram[:, 0]), regularisation)
    return weights / weights.sum(dim=1, keepdim=True)


def least_squares_weights(rows: Tensor, sources: Tensor, ids: Tensor) -> Tensor:
    """Weights ``(n, neighbours)`` float64 of the nearest point that neighbours span."""
    products, sides = [], []
    for some, targets in _blocks(ids, rows, sources):
        near = functional.embedding(some, sources)
        products.append(near @ near.mT)
        sides.append((near @ targets.unsqueeze(-1)).squeeze(-1))
    return _solved(torch.cat(products).double(), torch.cat(sides).double(), RIDGE)


def sum_lengths(weights: Tensor, sources: Tensor, ids: Tensor) -> Tensor:
    """The lengths ``(n,)`` float64 of the weighted sums of neighbours."""
    parts = [
        (some_weights.unsqueeze(1) @ functional.embedding(some, sources).double()).norm(dim=-1)
        for some, some_weights in _blocks(ids, weights, sources)
    ]
    return torch.cat(parts).squeeze(-1)


def _blocks(ids: Tensor, rows: Tensor, sources: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Ids and what belongs to them, as many at a time as may be gathered from ``sources``."""
    size = max(1, BLOCK_GATHERED // (ids.shape[1] * sources.shape[1]))
    return list(zip(ids.split(size), rows.split(size), strict=True))


def _solved(gram: Tensor, side: Tensor, regularisation: float) -> Tensor:
    """Solutions of the small symmetric systems, with scikit-learn's rule for the diagonal."""
    trace = gram.diagonal(dim1=1, dim2=2).sum(dim=1)
    ridge = torch.where(trace > 0, regularisation * trace, regularisation)
    gram = gram + torch.diag_embed(ridge.unsqueeze(1).expand_as(side))
    root = torch.linalg.cholesky(gram)
    return torch.cholesky_solve(side.unsqueeze(-1), root).squeeze(-1)


def nearest_others(vectors: Tensor, rows: Tensor, neighbours: int) -> tuple[Tensor, Tensor]:
    """The nearest other rows of some rows, by float32 cosines, and these cosines.

    Memory beside the vectors is theirs once more, and a block of scores.

    Args:
        vectors: ``(n, dim)``.
        rows: ``(m,)`` whose neighbours are wanted.
        neighbours: How many; less than ``n``.

    Returns:
        Rows and cosines ``(m, neighbours)``, the nearest first.
    """
    candidates = units(vectors.float())
    ids, cosines = [], []
    for some in rows.split(max(1, BLOCK_SCORES // len(candidates))):
        scores = candidates[some] @ candidates.T
        scores[torch.arange(len(some)), some] = -torch.inf
        found = scores.topk(neighbours, dim=1)
        ids.append(found.indices)
        cosines.append(found.values)
    return torch.cat(ids), torch.cat(cosines)


def shared_neighbours(before: Tensor, after: Tensor) -> Tensor:
    """The share ``(n,)`` of each row's neighbours ``(n, neighbours)`` that stay neighbours."""
    parts = [
        (one[:, :, None] == other[:, None, :]).any(dim=2).double().mean(dim=1)
        for one, other in zip(before.split(BLOCK_SHARED), after.split(BLOCK_SHARED), strict=True)
    ]
    return torch.cat(parts)
