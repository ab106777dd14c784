"""Greedy search: at each step the likeliest token."""

from __future__ import annotations

import torch
from torch import Tensor

from smalti.layers.largest import largest
from smalti.translation.ids import EOS
from smalti.translation.walks import Walk

# Finished rows are carried along until so large a share of all are.
CARRIED = 0.25


def greedy_search(walk: Walk, limits: list[int]) -> list[list[int]]:
    """The tokens of each row, without EOS.

    Args:
        walk: A row a sentence.
        limits: How many tokens each has at most.
    """
    found: list[list[int]] = [[] for _ in limits]
    # Which sentence a row belongs to, and whether it still grows.
    owners, growing = list(range(len(limits))), [limit > 0 for limit in limits]
    ids = walk.begin()
    while any(growing):
        ids = largest(walk.step(ids))
        for place, token in enumerate(ids.tolist()):
            owner = owners[place]
            if growing[place] and token != EOS:
                found[owner].append(token)
            if token == EOS or len(found[owner]) == limits[owner]:
                growing[place] = False
        left = [place for place, grows in enumerate(growing) if grows]
        if left and len(left) <= (1 - CARRIED) * len(growing):
            ids = _keep(walk, ids, left)
            owners, growing = [owners[place] for place in left], [True] * len(left)
    return found


def _keep(walk: Walk, ids: Tensor, left: list[int]) -> Tensor:
    places = torch.tensor(left, device=ids.device)
    walk.keep(places, places)
    return ids[places]
