"""Tasks on texts whose input table is full, or learns its codes with the task."""

from smalti.recipes.texts.config import (
    ClassifierConfig,
    LanguageModelConfig,
    MaskedModelConfig,
    TableTaskConfig,
)
from smalti.recipes.texts.language_model import train_language_model
from smalti.recipes.texts.masked_model import train_masked_model
from smalti.recipes.texts.outcome import Learned, Outcome
from smalti.recipes.texts.text_classifier import train_text_classifier

__all__ = [
    "ClassifierConfig",
    "LanguageModelConfig",
    "Learned",
    "MaskedModelConfig",
    "Outcome",
    "TableTaskConfig",
    "train_language_model",
    "train_masked_model",
    "train_text_classifier",
]
