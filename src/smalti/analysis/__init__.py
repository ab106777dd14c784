"""One question about codes or tables, one file, one finding."""

from smalti.analysis.coverage import coverage
from smalti.analysis.finding import Finding
from smalti.analysis.frequency_bands import frequency_bands

__all__ = ["Finding", "coverage", "frequency_bands"]
