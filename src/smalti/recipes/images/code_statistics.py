"""What the codes of a whole data set look like: in use, entropy, shared information."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from smalti.codes import Usage, mutual_information, place_entropies


def code_statistics(
    codes: Tensor,
    code_sizes: Sequence[int],
    seed: int = 0,
    stored_sizes: Sequence[int] | None = None,
) -> dict[str, Any]:
    """The figures of one level, as plain data; entropies in bits.

    Args:
        codes: Grids ``(n, height, width, num_codebooks)``.
        code_sizes: How many codewords each codebook has.
        seed: Of the shuffled zero level.
        stored_sizes: The same of the codebooks that are stored, where the codes of a place take
            them in turn: all codes of a codebook are then counted together.

    Returns:
        ``codebooks``: for each stored codebook its size, codes in use, entropy over all places,
        the same with the Miller-Madow correction. ``entropy_at_a_place_bits``: the mean over
        places and codebooks, plug-in and corrected. ``mutual_information_bits``: the mean over
        pairs of codebooks, its shuffled zero level, the difference, and the matrices of the
        first two.
    """
    usage = Usage(code_sizes if stored_sizes is None else stored_sizes)
    usage.update(codes.unflatten(-1, (-1, len(usage))))
    places = place_entropies(codes, code_sizes)
    found: dict[str, Any] = {
        "grid": list(codes.shape[1:3]),
        "used_share": usage.used_share,
        "codebooks": [
            {
                "size": size,
                "in_use": usage[book].in_use,
                "entropy_bits": usage[book].entropy_bits,
                "corrected_entropy_bits": usage[book].corrected_entropy_bits,
            }
            for book, size in enumerate(usage.code_sizes)
        ],
        "entropy_at_a_place_bits": {
            "plug_in": _bits(places.plug_in.mean()),
            "corrected": _bits(places.corrected.mean()),
        },
        "mutual_information_bits": None,
    }
    books = len(code_sizes)
    if books > 1:
        generator = torch.Generator().manual_seed(seed)
        shared = mutual_information(codes, code_sizes, generator)
        pairs = torch.triu_indices(books, books, offset=1).unbind()
        found["mutual_information_bits"] = {
            "plug_in": _bits(shared.plug_in[pairs].mean()),
            "shuffled": _bits(shared.shuffled[pairs].mean()),
            "corrected": _bits(shared.corrected[pairs].mean()),
            "plug_in_matrix": (shared.plug_in / math.log(2)).tolist(),
            "shuffled_matrix": (shared.shuffled / math.log(2)).tolist(),
        }
    return found


def _bits(nats: Tensor) -> float:
    return float(nats) / math.log(2)
