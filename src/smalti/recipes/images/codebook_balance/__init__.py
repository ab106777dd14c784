"""Codebook size against width: which pair of one capacity serves an image model best."""

from smalti.recipes.images.codebook_balance.arms import Arm, pairs_of, require_pairs
from smalti.recipes.images.codebook_balance.defaults import default_config, default_source
from smalti.recipes.images.codebook_balance.findings import ArmFigures, Findings
from smalti.recipes.images.codebook_balance.measuring import measure, place_figures
from smalti.recipes.images.codebook_balance.study import tune_codebook

__all__ = [
    "Arm",
    "ArmFigures",
    "Findings",
    "default_config",
    "default_source",
    "measure",
    "pairs_of",
    "place_figures",
    "require_pairs",
    "tune_codebook",
]
