"""What a decoder's numbers say about pixels: one file a likelihood, one contract."""

from smalti.autoencoders.likelihoods.base import Likelihood, build_likelihood, likelihoods
from smalti.autoencoders.likelihoods.categorical import Categorical
from smalti.autoencoders.likelihoods.logistic_mixture import LogisticMixture
from smalti.autoencoders.likelihoods.square_error import SquareError

__all__ = [
    "Categorical",
    "Likelihood",
    "LogisticMixture",
    "SquareError",
    "build_likelihood",
    "likelihoods",
]
