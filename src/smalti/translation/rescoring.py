"""The best of several translations, as a teacher sees them."""

from __future__ import annotations

import torch
from torch import Tensor

from smalti.errors import ConfigError
from smalti.translation.base import Translator
from smalti.translation.ids import EOS, MARKS, PAD


def best_of(
    teacher: Translator | None,
    source: Tensor,
    candidates: list[list[int]],
    length_penalty: float,
) -> list[list[int]]:
    """One translation a source: the likeliest over a power of its length.

    Args:
        teacher: Who says how likely a translation is.
        source: Sentences ``(batch, length)``.
        candidates: Equally many in a row for each source.
        length_penalty: The power.
    """
    if teacher is None:
        raise ConfigError(
            "several translations need someone to choose: give rescore_with, a model that can "
            "score, or ask for one"
        )
    clean = [[token for token in one if token not in MARKS] for one in candidates]
    each = len(clean) // len(source)
    longest = max(len(one) for one in clean) + 1
    rows = [[*one, EOS] + [PAD] * (longest - len(one) - 1) for one in clean]
    target = torch.tensor(rows, device=source.device)
    scores = teacher.score(source.repeat_interleave(each, dim=0), target)
    lengths = (target != PAD).sum(dim=1)
    chosen = (scores / lengths**length_penalty).view(-1, each).argmax(dim=1).tolist()
    return [clean[row * each + place] for row, place in enumerate(chosen)]
