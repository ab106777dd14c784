"""What happens to codewords that no vector chooses.

Reference:
    Fostiropoulos, Boehm, "Implicit Feature Decoupling with Depthwise Quantization", CVPR
    2022, arXiv:2203.08080, section 4 (codewords of little usage are replaced by vectors).

Differs from the paper:
    A codeword is dead when its usage is small *in proportion* to the mean usage, so one
    threshold serves every codebook size; count and sum start anew with the codeword, so it
    is not overwritten by what its predecessor had collected; replacements are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from smalti.quantizers.settings import count, number


@dataclass(frozen=True)
class Revive:
    """Dead codewords move to vectors drawn from the batch.

    Args:
        threshold: Dead is a usage below this share of the mean usage, tau.
        period: Steps between two looks.
    """

    kind: ClassVar[str] = "revive"
    threshold: float = 0.05
    period: int = 100

    def __post_init__(self) -> None:
        number("threshold", self.threshold, above=0, below=1)
        count("period", self.period)


@dataclass(frozen=True)
class Keep:
    """Dead codewords stay where they are."""

    kind: ClassVar[str] = "keep"


DEAD = {kind.kind: kind for kind in (Revive, Keep)}
Dead = Revive | Keep
