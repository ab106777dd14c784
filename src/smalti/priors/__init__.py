"""Grids of codes become probabilities and samples: one file a prior, one contract for all."""

from smalti.priors.autoregressive import Autoregressive
from smalti.priors.base import Prior, build_prior, priors
from smalti.priors.level import Level
from smalti.priors.levels import LevelsPrior
from smalti.priors.stepper import Stepper
from smalti.priors.uniform import Uniform
from smalti.priors.unigram import Unigram

__all__ = [
    "Autoregressive",
    "Level",
    "LevelsPrior",
    "Prior",
    "Stepper",
    "Uniform",
    "Unigram",
    "build_prior",
    "priors",
]
