"""How much do codes say, and do codebooks say the same twice?

Reference:
    Fostiropoulos, Boehm, "Implicit Feature Decoupling with Depthwise Quantization", CVPR
    2022, arXiv:2203.08080, section 5 and figure 3.

Differs from the paper:
    Entropies stand with their correction, mutual information with what shuffled pairs give: an
    estimate from few codes is too high by far. Redundancy is what remains above that level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from smalti.analysis.code_group import CodeGroup, named
from smalti.analysis.figures import Bars, Figure, HeatMap, Lines, by_number
from smalti.analysis.finding import Finding
from smalti.codes import mutual_information, place_entropies
from smalti.errors import DataError, require

# Pairs grow with the square: of more codebooks, so many are looked at, evenly spaced.
MOST_PAIRED = 64


def entropy_and_information(groups: Sequence[CodeGroup], seed: int = 0) -> Finding:
    """Entropy by place and codebook, and the mutual information of all pairs of codebooks.

    Args:
        groups: Codes ``(n, ..., num_codebooks)``; the axes between are places, such as those
            of a grid.
        seed: Shuffles pairs for the zero level.
    """
    require(len(groups) > 0, "expected at least one group of codes, got none", DataError)
    found: dict[str, dict[str, Any]] = {}
    figures: list[Figure] = []
    for group in groups:
        flat = group.codes.reshape(-1, len(group.code_sizes))
        books = place_entropies(flat, group.code_sizes)
        entry: dict[str, Any] = {
            "samples": len(flat),
            "entropy_bits": _bits(books.plug_in).tolist(),
            "corrected_entropy_bits": _bits(books.corrected).tolist(),
            "capacity_bits": [math.log2(size) for size in group.code_sizes],
        }
        figures.append(_entropies(entry, named(groups, group)))
        if group.codes.dim() > 2:
            of_places = place_entropies(group.codes, group.code_sizes)
            by_place = _bits(of_places.plug_in)
            entry["place_entropy_bits"] = by_place.tolist()
            entry["corrected_place_entropy_bits"] = _bits(of_places.corrected).tolist()
            if group.codes.dim() == 4:
                figures.append(_places(by_place.mean(dim=-1), named(groups, group)))
        entry["mutual_information"] = _pairs(group, flat, seed)
        if entry["mutual_information"] is not None:
            figures.extend(_shared(entry, named(groups, group)))
        found[group.name] = entry
    return Finding(
        name="entropy_and_information",
        title="How much do codes say, and do codebooks repeat each other?",
        caption=_caption(found),
        numbers={"groups": found},
        figures=figures,
    )


def _pairs(group: CodeGroup, flat: Tensor, seed: int) -> dict[str, Any] | None:
    many = len(group.code_sizes)
    if many < 2:
        return None
    step = -(-many // MOST_PAIRED)
    chosen = list(range(0, many, step))
    sizes = [group.code_sizes[book] for book in chosen]
    generator = torch.Generator().manual_seed(seed)
    shared = mutual_information(flat[:, chosen], sizes, generator)
    above = torch.triu_indices(len(chosen), len(chosen), offset=1).unbind()
    parts = {
        "plug_in": _bits(shared.plug_in),
        "shuffled": _bits(shared.shuffled),
        "corrected": _bits(shared.corrected),
    }
    return {
        "codebooks": chosen,
        **{f"{name}_bits": matrix.tolist() for name, matrix in parts.items()},
        **{f"mean_{name}_bits": float(matrix[above].mean()) for name, matrix in parts.items()},
    }


def _caption(found: dict[str, dict[str, Any]]) -> str:
    told = []
    for name, entry in found.items():
        capacity = mean(entry["capacity_bits"])
        text = (
            f"a code says {mean(entry['entropy_bits']):.2f} of {capacity:.2f} bits"
            if len(found) == 1
            else f"{name}: {mean(entry['entropy_bits']):.2f} of {capacity:.2f} bits a code"
        )
        pairs = entry["mutual_information"]
        if pairs is not None:
            text += (
                f", and two codebooks share {pairs['mean_plug_in_bits']:.3f} bits where shuffled "
                f"codes give {pairs['mean_shuffled_bits']:.3f} "
                f"({pairs['mean_corrected_bits']:+.3f} above chance)"
            )
        told.append(text)
    joined = "; ".join(told)
    return f"On the average {joined}." if len(found) == 1 else f"{joined}."


def _entropies(entry: dict[str, Any], name: str) -> Bars | Lines:
    return by_number(
        f"Entropy by codebook{name}",
        "codebook",
        "bits",
        {"counted": entry["entropy_bits"], "corrected": entry["corrected_entropy_bits"]},
        limit=(max(entry["capacity_bits"]), "capacity"),
    )


def _places(by_place: Tensor, name: str) -> HeatMap:
    height, width = by_place.shape
    return HeatMap(
        title=f"Entropy by place{name}",
        row_title="row",
        column_title="column",
        value_title="bits, mean of codebooks",
        rows=[str(row) for row in range(height)],
        columns=[str(column) for column in range(width)],
        values=by_place.tolist(),
    )


def _shared(entry: dict[str, Any], name: str) -> list[Figure]:
    """The estimate above the diagonal and its zero level below, and what is above that level."""
    pairs = entry["mutual_information"]
    names = [str(book) for book in pairs["codebooks"]]
    plug_in, shuffled = pairs["plug_in_bits"], pairs["shuffled_bits"]
    places = range(len(names))
    both = [
        [None if i == j else plug_in[i][j] if i < j else shuffled[i][j] for j in places]
        for i in places
    ]
    above = [
        [None if i == j else max(0.0, pairs["corrected_bits"][i][j]) for j in places]
        for i in places
    ]
    shown = {
        f"Mutual information of codebooks{name}: above the diagonal as counted, below it what "
        "shuffled codes give": both,
        f"Mutual information above chance{name}: what is counted, less what shuffled codes give": (
            above
        ),
    }
    return [
        HeatMap(title, "codebook", "codebook", "bits", names, names, values)
        for title, values in shown.items()
    ]


def _bits(nats: Tensor) -> Tensor:
    return nats / math.log(2)
