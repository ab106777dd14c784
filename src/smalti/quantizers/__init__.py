"""Vectors become codes and codes vectors: one file a method, one contract for all.

A new method is found by its file: every module of this package is imported, and every
registered class can be imported from here. The imports below are for readers and type
checkers.
"""

import importlib
import pkgutil

from smalti.quantizers.adaptive import Adaptive
from smalti.quantizers.base import Quantized, Quantizer, build, quantizers
from smalti.quantizers.channels_first import ChannelsFirst
from smalti.quantizers.depthwise import Depthwise
from smalti.quantizers.differentiable import DifferentiableCentroid, DifferentiableSoftmax
from smalti.quantizers.finite_scalar import FiniteScalar
from smalti.quantizers.gradients import Rotation, StraightThrough
from smalti.quantizers.gumbel import Gumbel
from smalti.quantizers.identity import Identity
from smalti.quantizers.learning import GradientDescent, MovingAverage
from smalti.quantizers.lookup_free import LookupFree
from smalti.quantizers.nearest import nearest
from smalti.quantizers.product import Product
from smalti.quantizers.repeated import Repeated
from smalti.quantizers.residual import Residual
from smalti.quantizers.revival import Keep, Revive
from smalti.quantizers.semantic_hash import SemanticHash
from smalti.quantizers.soft_em import Sampled, SoftEM
from smalti.quantizers.starts import DataStart, KMeansStart, RandomStart
from smalti.quantizers.updates import apply_updates, defer_updates, follow
from smalti.quantizers.vector import VectorQuantizer

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
globals().update({kind.__name__: kind for _, kind in quantizers})

__all__ = [
    "Adaptive",
    "ChannelsFirst",
    "DataStart",
    "Depthwise",
    "DifferentiableCentroid",
    "DifferentiableSoftmax",
    "FiniteScalar",
    "GradientDescent",
    "Gumbel",
    "Identity",
    "KMeansStart",
    "Keep",
    "LookupFree",
    "MovingAverage",
    "Product",
    "Quantized",
    "Quantizer",
    "RandomStart",
    "Repeated",
    "Residual",
    "Revive",
    "Rotation",
    "Sampled",
    "SemanticHash",
    "SoftEM",
    "StraightThrough",
    "VectorQuantizer",
    "apply_updates",
    "build",
    "defer_updates",
    "follow",
    "nearest",
    "quantizers",
]
