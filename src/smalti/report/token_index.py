"""What the page knows of each token, in few bytes: codes, neighbours, use, cosine.

The page itself finds the words that share codes. What does not fit into the bytes a page may
have is left out from the rarest rows on, and the page says so.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from smalti.analysis import Neighbours
from smalti.embeddings.tiers import Tier

# Bytes of a page's data: for vocabularies as most models have them, and for larger ones.
USUAL_ROWS, USUAL_BYTES, MOST_BYTES = 1 << 16, 4_300_000, 16_500_000
# Marks in a row's number of its tier that its codes are there.
WITH_CODES = 0x80
NUMBERS = {1: np.uint8, 2: np.uint16, 4: np.uint32}


def token_index(
    words: Sequence[str],
    tiers: Sequence[Tier],
    order: Tensor,
    *,
    counts: Tensor | None = None,
    cosines: Tensor | None = None,
    neighbours: Neighbours | None = None,
) -> dict[str, Any]:
    """The data of the search box, ready for JSON.

    Args:
        words: For each row a word to show.
        tiers: How rows are stored; all of them together hold every row once.
        order: All rows, or those that matter most, the commonest first.
        counts: ``(rows,)`` how often each row is used.
        cosines: ``(rows,)`` how close each row is to the original.
        neighbours: Of some rows, before and after.
    """
    rows = len(words)
    content: dict[str, Any] = {"words": list(words), "tiers": []}
    if counts is not None:
        content["counts"] = packed(counts.clamp(max=2**32 - 1).long().numpy())
    if cosines is not None:
        content["cosines"] = packed((cosines.clamp(-1, 1) * 10_000 + 10_000).round().long().numpy())
    if neighbours is not None:
        content["neighbours"] = _neighbours(neighbours)
    left = (USUAL_BYTES if rows <= USUAL_ROWS else MOST_BYTES) - size_of(content) - 2 * rows
    tier_of = np.zeros(rows, np.uint8)
    for number, tier in enumerate(tiers[: WITH_CODES - 1]):
        tier_of[tier.ids.numpy()] = number
    wide = [sum(_bytes(tier) for _ in tier.code_sizes) for tier in tiers]
    chosen = _that_fit(order.numpy(), tier_of, np.array(wide), left)
    for number, tier in enumerate(tiers):
        entry: dict[str, Any] = {"words": tier.words, "sizes": list(tier.code_sizes)}
        mine = chosen[tier.ids.numpy()] & (len(tier.code_sizes) > 0)
        if mine.any():
            kind = NUMBERS[_bytes(tier)]
            entry["codes"] = packed(tier.codes().numpy()[mine].astype(kind), kind)
            tier_of[tier.ids.numpy()[mine]] = number | WITH_CODES
        entry["rows"] = int(mine.sum())
        entry["all"] = len(tier.ids)
        content["tiers"].append(entry)
    content["tier_of"] = packed(tier_of)
    return content


def packed(numbers: npt.NDArray[Any], kind: Any = None) -> dict[str, Any]:
    """Whole numbers from 0 on in as few bytes as they need, as base64."""
    if kind is None:
        largest = int(numbers.max(initial=0))
        kind = next(kind for size, kind in NUMBERS.items() if largest < 256**size)
    data = np.ascontiguousarray(numbers.astype(np.dtype(kind).newbyteorder("<")))
    return {"bytes": data.itemsize, "data": base64.b64encode(data.tobytes()).decode("ascii")}


def size_of(content: Any) -> int:
    """About how many bytes of JSON something is."""
    if isinstance(content, dict):
        return sum(size_of(value) + 20 for value in content.values())
    if isinstance(content, list):
        return sum(size_of(value) for value in content)
    return len(content.encode("utf-8", "replace")) + 3 if isinstance(content, str) else 8


def _neighbours(found: Neighbours) -> dict[str, Any]:
    return {
        "rows": packed(found.rows.numpy()),
        "many": found.before.shape[1],
        "among": found.among,
        "before": packed(found.before.numpy()),
        "after": packed(found.after.numpy()),
        # Hundredths, from -1 on.
        "before_cosines": packed(_hundredths(found.before_cosines)),
        "after_cosines": packed(_hundredths(found.after_cosines)),
    }


def _hundredths(cosines: Tensor) -> npt.NDArray[Any]:
    hundredths: npt.NDArray[Any] = (cosines.clamp(-1, 1) * 100 + 100).round().long().numpy()
    return hundredths


def _bytes(tier: Tier) -> int:
    return 1 if max(tier.code_sizes, default=0) <= 256 else 2


def _that_fit(
    order: npt.NDArray[Any],
    tier_of: npt.NDArray[np.uint8],
    wide: npt.NDArray[Any],
    left: int,
) -> npt.NDArray[np.bool_]:
    """The rows whose codes fit into ``left`` bytes of base64, the commonest first."""
    chosen = np.zeros(len(tier_of), bool)
    taken = np.cumsum(wide[tier_of[order]] * 4 / 3)
    chosen[order[taken <= left]] = True
    return chosen
