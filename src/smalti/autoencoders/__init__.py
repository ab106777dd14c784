"""Images become grids of codes and grids of codes images: one file a model, one contract."""

from smalti.autoencoders.assignments import assignments
from smalti.autoencoders.base import (
    Autoencoder,
    Reconstruction,
    autoencoders,
    build_autoencoder,
)
from smalti.autoencoders.coded import CodedAutoencoder
from smalti.autoencoders.convolutional import Convolutional
from smalti.autoencoders.dense_split import DenseSplit
from smalti.autoencoders.gaussian import GaussianAutoencoder
from smalti.autoencoders.gradient_gap import GradientGap, gradient_gap
from smalti.autoencoders.hierarchical import Hierarchical
from smalti.autoencoders.likelihoods import Likelihood, build_likelihood

__all__ = [
    "Autoencoder",
    "CodedAutoencoder",
    "Convolutional",
    "DenseSplit",
    "GaussianAutoencoder",
    "GradientGap",
    "Hierarchical",
    "Likelihood",
    "Reconstruction",
    "assignments",
    "autoencoders",
    "build_autoencoder",
    "build_likelihood",
    "gradient_gap",
]
