"""Codes as integers: packed into bits, counted over a data set."""

from smalti.codes.entropy import Entropies, place_entropies
from smalti.codes.mutual_information import MutualInformation, mutual_information
from smalti.codes.packing import bits_of, pack, packed_bytes, unpack
from smalti.codes.usage import CodebookUsage, Usage

__all__ = [
    "CodebookUsage",
    "Entropies",
    "MutualInformation",
    "Usage",
    "bits_of",
    "mutual_information",
    "pack",
    "packed_bytes",
    "place_entropies",
    "unpack",
]
