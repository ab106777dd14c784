"""Features of images that a trained network gives, for quantizers that are fitted to them."""

from smalti.experiments.features.grids import FeatureSettings, feature_grids

__all__ = ["FeatureSettings", "feature_grids"]
