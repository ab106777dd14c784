"""The settings that all methods which make codes have in common."""

from __future__ import annotations

from collections.abc import Sequence

from smalti.embeddings.base import Compressor
from smalti.embeddings.border import DTYPES
from smalti.quantizers.settings import count, number, word

# More codewords would need more than two bytes a code.
MOST = 1 << 16


class CodeMethod(Compressor):
    """A method that points from rows into codebooks.

    Args:
        num_codebooks: Codes of a row, or of a part of it.
        codebook_size: Codewords of each codebook.
        power: How much token counts matter: 0 not at all, 1 fully.
        precision: What codebooks are saved as.
        precisions: What they may be saved as.
    """

    def __init__(
        self,
        num_codebooks: int,
        codebook_size: int,
        power: float,
        precision: str,
        precisions: Sequence[str] = tuple(DTYPES),
    ) -> None:
        self.num_codebooks = count("num_codebooks", num_codebooks)
        self.codebook_size = count("codebook_size", codebook_size, least=2, most=MOST)
        self.power = number("power", power, least=0, most=1)
        self.precision = word("precision", precision, precisions)
