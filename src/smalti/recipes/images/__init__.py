"""Image models as a whole: an autoencoder and its priors, trained, saved, measured, used."""

from smalti.recipes.images.config import (
    AutoencoderConfig,
    DataSettings,
    Growth,
    PriorSettings,
)
from smalti.recipes.images.evaluating import Evaluation, Quality, evaluate_run
from smalti.recipes.images.image_sets import (
    read_fitting_images,
    read_training_images,
    read_unseen_images,
)
from smalti.recipes.images.rates import BitsPerDim
from smalti.recipes.images.reconstructing import bits_of_levels, level_numbers, reconstruct
from smalti.recipes.images.running import train_run
from smalti.recipes.images.sampling import sample
from smalti.recipes.images.saved_run import Run, load_run, save_run
from smalti.recipes.run_directories import RunOutcome

__all__ = [
    "AutoencoderConfig",
    "BitsPerDim",
    "DataSettings",
    "Evaluation",
    "Growth",
    "PriorSettings",
    "Quality",
    "Run",
    "RunOutcome",
    "bits_of_levels",
    "evaluate_run",
    "level_numbers",
    "load_run",
    "read_fitting_images",
    "read_training_images",
    "read_unseen_images",
    "reconstruct",
    "sample",
    "save_run",
    "train_run",
]
