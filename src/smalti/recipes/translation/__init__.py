"""Translation models as a whole: trained from two files, saved, used, measured, distilled."""

from smalti.recipes.translation.config import DecodingSettings, TextSettings, TranslationConfig
from smalti.recipes.translation.distilling import Distilled, distill
from smalti.recipes.translation.evaluating import TranslationEvaluation, evaluate_translation_run
from smalti.recipes.translation.running import train_translation_run
from smalti.recipes.translation.saved_run import (
    TranslationRun,
    load_translation_run,
    save_translation_run,
)
from smalti.recipes.translation.scoring import Score, score
from smalti.recipes.translation.text_sets import find_pair
from smalti.recipes.translation.translating import Translations, translate_texts

__all__ = [
    "DecodingSettings",
    "Distilled",
    "Score",
    "TextSettings",
    "TranslationConfig",
    "TranslationEvaluation",
    "TranslationRun",
    "Translations",
    "distill",
    "evaluate_translation_run",
    "find_pair",
    "load_translation_run",
    "save_translation_run",
    "score",
    "train_translation_run",
    "translate_texts",
]
