"""Sentences become sentences, directly or through codes: one file a model, one contract."""

from smalti.translation.autoregressive import Autoregressive
from smalti.translation.base import Translator, build_translator, translators
from smalti.translation.decoding import Decoding
from smalti.translation.latent import Latent
from smalti.translation.latent_search import Latents
from smalti.translation.parallel import Parallel
from smalti.translation.tables import TokenTable

__all__ = [
    "Autoregressive",
    "Decoding",
    "Latent",
    "Latents",
    "Parallel",
    "TokenTable",
    "Translator",
    "build_translator",
    "translators",
]
