"""Codes as integers: packed into bits, counted over a data set."""

from smalti.codes.packing import bits_of, pack, packed_bytes, unpack
from smalti.codes.usage import CodebookUsage, Usage

__all__ = ["CodebookUsage", "Usage", "bits_of", "pack", "packed_bytes", "unpack"]
