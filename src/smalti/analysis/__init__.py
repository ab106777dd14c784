"""One question about codes, tables or runs, one file, one finding."""

from smalti.analysis.change_rate import change_rate
from smalti.analysis.code_distribution import code_distribution
from smalti.analysis.code_group import CodeGroup
from smalti.analysis.codebook_balance import codebook_balance
from smalti.analysis.coverage import coverage
from smalti.analysis.finding import Finding
from smalti.analysis.frequency_bands import frequency_bands
from smalti.analysis.information import entropy_and_information
from smalti.analysis.neighbours import Neighbours, find_neighbours, neighbours
from smalti.analysis.rank import rank
from smalti.analysis.rate_distortion import rate_distortion
from smalti.analysis.reconstructions import reconstructions
from smalti.analysis.shared_codes import shared_codes
from smalti.analysis.storage import storage
from smalti.analysis.training_curves import training_curves

__all__ = [
    "CodeGroup",
    "Finding",
    "Neighbours",
    "change_rate",
    "code_distribution",
    "codebook_balance",
    "coverage",
    "entropy_and_information",
    "find_neighbours",
    "frequency_bands",
    "neighbours",
    "rank",
    "rate_distortion",
    "reconstructions",
    "shared_codes",
    "storage",
    "training_curves",
]
