"""The length penalty of beam search, chosen on held-out sentences and kept with the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from smalti.data import AlignedTexts, Subwords
from smalti.progress import progress_bar
from smalti.recipes.translation.config import DecodingSettings
from smalti.recipes.translation.scoring import score
from smalti.recipes.translation.translating import Batches
from smalti.translation import Autoregressive, Decoding, Translator

# Differences in BLEU that some hundred sentences can't tell apart.
ALIKE = 0.3


def chosen_decoding(
    translator: Translator, subwords: Subwords, valid: AlignedTexts, settings: DecodingSettings
) -> tuple[Decoding, dict[str, float]]:
    """How a trained model shall translate, and what that was chosen by.

    Args:
        translator: The model.
        subwords: Its vocabulary.
        valid: Held-out pairs.
        settings: The beam and the penalties to choose from. Models that do not look one token
            after the other have nothing to choose.
    """
    if not isinstance(translator, Autoregressive):
        return Decoding(), {}
    made = Decoding(beam=settings.beam, length_penalty=settings.length_penalties[0])
    if len(settings.length_penalties) == 1 or settings.beam == 1:
        return made, {}
    batches = Batches(translator, subwords, valid.source)
    scores: dict[float, float] = {}
    total = len(valid) * len(settings.length_penalties)
    with progress_bar("tuning the length penalty", "sentences", total=total) as advance:
        for penalty in settings.length_penalties:
            options = replace(made, length_penalty=penalty)
            found = batches.all_translated(options, advance=advance)
            scores[penalty] = score(found, valid.target).bleu
    best = least_of_best(scores)
    return replace(made, length_penalty=best), {
        "length_penalty": best,
        f"beam_{made.beam}_bleu": scores[best],
    }


def least_of_best(scores: Mapping[float, float]) -> float:
    """The least penalty among those that score about as well as the best one.

    A larger one makes translations longer wherever it is used, in distillation and in rescoring
    too, and held-out references may happen to be long.

    Args:
        scores: BLEU by penalty.

    Example:
        >>> least_of_best({0.0: 37.0, 1.0: 39.6, 2.0: 39.5, 3.0: 39.8})
        1.0
    """
    enough = max(scores.values()) - ALIKE
    return min(penalty for penalty, bleu in scores.items() if bleu >= enough)
