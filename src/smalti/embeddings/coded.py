"""A table of bit-packed codes: parts of a row, each a codeword or a sum of codewords.

Product codes, residual codes, additive codes and the exported form of differentiable
product quantization are all this table; they differ in how codes and codewords are found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from smalti.codes.packing import bits_of, pack, packed_bytes, take
from smalti.embeddings.base import BLOCK_ROWS, CompressedEmbedding, tables
from smalti.embeddings.border import DTYPES
from smalti.embeddings.saved_form import to_saved
from smalti.errors import require
from smalti.quantizers.settings import count, flag, word

# With more hidden states than this, decoding a block of rows and one matrix product beats
# adding up the scores of codewords.
FEW = 128
# Codewords of so many bytes are gathered as single numbers of these types.
WIDE = {2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}
PRECISIONS = (*DTYPES, "int8")


def as_stored(codebooks: Tensor, precision: str) -> Tensor:
    """Codebooks ``(..., codebook_size, width)`` as a table of that precision will use them."""
    if precision == "int8":
        steps = int8_steps(codebooks)
        return to_saved(codebooks / steps, torch.int8) * steps
    return codebooks.to(DTYPES[precision]).float()


def int8_steps(codebooks: Tensor) -> Tensor:
    """The step of each codebook that lets its largest number be 127 steps."""
    return codebooks.abs().amax(dim=(-2, -1), keepdim=True).clamp(min=1e-30) / 127


def gathered(codewords: Tensor, places: Tensor) -> Tensor:
    """Codewords ``(..., width)`` of places ``(...)``, without gradients.

    A codeword of up to 16 bytes is one number of a wide type: single numbers are gathered
    faster than rows.
    """
    wide = WIDE.get(codewords.shape[-1] * codewords.element_size())
    if wide is None:
        return functional.embedding(places, codewords)
    numbers = codewords.contiguous().view(wide).view(-1).index_select(0, places.reshape(-1))
    return numbers.view(codewords.dtype).view(*places.shape, codewords.shape[-1])


@tables.register("coded")
class CodedTable(CompressedEmbedding):
    """Rows as codes: ``parts`` pieces of a row, each the sum of ``stages`` codewords.

    Args:
        rows: How many vectors.
        dim: Width of a vector.
        parts: How many pieces a row is cut into; it must divide ``dim``.
        stages: How many codewords are added up for a piece.
        codebook_size: Codewords in each codebook.
        shared: Whether all parts use the same codebooks.
        rotated: Whether vectors are turned by a stored rotation after decoding.
        precision: What codebooks are saved as: float32, float16, or int8 with one float32
            step a codebook. A codeword's own rounding is far below what coding loses.
    """

    holds: ClassVar[Mapping[str, str]] = {
        "codes": "codes",
        "codebooks": "codebooks",
        "steps": "codebooks",
        "rotation": "codebooks",
    }
    codes: Tensor
    codebooks: Tensor
    steps: Tensor
    rotation: Tensor

    def __init__(
        self,
        rows: int,
        dim: int,
        parts: int,
        stages: int,
        codebook_size: int,
        shared: bool = False,
        rotated: bool = False,
        precision: str = "float16",
    ) -> None:
        super().__init__(rows, dim)
        self.parts = count("parts", parts)
        self.stages = count("stages", stages)
        self.codebook_size = count("codebook_size", codebook_size, least=2, most=1 << 16)
        require(dim % self.parts == 0, f"{parts} parts must divide the width {dim}")
        self.shared, self.rotated = flag("shared", shared), flag("rotated", rotated)
        self.precision = word("precision", precision, PRECISIONS)
        self.code_sizes = (self.codebook_size,) * (self.parts * self.stages)
        self.register_buffer(
            "codes", torch.zeros(packed_bytes(self.rows, self.code_sizes), dtype=torch.uint8)
        )
        books = 1 if self.shared else self.parts
        shape = (books, self.stages, self.codebook_size, self.dim // self.parts)
        dtype = torch.int8 if self.precision == "int8" else DTYPES[self.precision]
        self.store("codebooks", torch.zeros(shape), dtype)
        if self.precision == "int8":
            self.store("steps", torch.ones(books, self.stages, 1, 1))
        if self.rotated:
            wide = torch.float32 if self.precision == "float32" else torch.float16
            self.store("rotation", torch.eye(self.dim), wide)

    @classmethod
    @torch.no_grad()
    def holding(
        cls,
        codes: Tensor,
        codebooks: Tensor,
        rotation: Tensor | None = None,
        *,
        parts: int | None = None,
        precision: str = "float16",
    ) -> CodedTable:
        """A table of given codes ``(rows, parts * stages)`` and codebooks.

        Args:
            codes: For each row the codes of its first part's stages, then the second's.
            codebooks: ``(parts, stages, codebook_size, width)``; one for all parts if the
                first axis is 1 and ``parts`` is more.
            rotation: ``(dim, dim)``; a decoded row is multiplied by it from the right.
            parts: How many parts, when codebooks are shared.
            precision: What the tensors are saved as.
        """
        books, stages, codebook_size, width = codebooks.shape
        parts = parts or books
        made = cls(
            rows=len(codes),
            dim=parts * width,
            parts=parts,
            stages=stages,
            codebook_size=codebook_size,
            shared=books != parts,
            rotated=rotation is not None,
            precision=precision,
        )
        made.codes.copy_(pack(codes, made.code_sizes))
        if precision == "int8":
            steps = int8_steps(codebooks)
            made.steps.copy_(steps)
            codebooks = codebooks / steps
        made.codebooks.copy_(codebooks)
        if rotation is not None:
            made.rotation.copy_(rotation)
        return made

    def take_codes(self, ids: Tensor) -> Tensor:
        """The codes ``(n, parts * stages)`` of ids ``(n,)``."""
        return take(self.codes, ids, self.code_sizes)

    def _codewords(self) -> Tensor:
        """All codewords ``(parts * stages * codebook_size, width)`` in the order of codes."""
        codebooks = self.read("codebooks")
        if self.precision == "int8":
            codebooks = codebooks * self.read("steps")
        return self._for_all_parts(codebooks).reshape(-1, codebooks.shape[-1])

    def _for_all_parts(self, of_books: Tensor) -> Tensor:
        """What belongs to codebooks, for each part: they may share one."""
        return of_books.expand(self.parts, -1, -1, -1) if self.shared else of_books

    def _places(self, ids: Tensor) -> Tensor:
        """The rows of ``_codewords`` that make up each vector, ``(n, parts * stages)``."""
        books = len(self.code_sizes)
        offsets = self.codebook_size * torch.arange(books, device=ids.device, dtype=torch.int32)
        if bits_of(self.codebook_size) == 8:
            # One pass from bytes to places, in 32 bits: most of a lookup's time is here.
            return self.codes.view(self.rows, books).index_select(0, ids) + offsets
        return self.take_codes(ids) + offsets

    def lookup(self, ids: Tensor) -> Tensor:
        """Gather codewords, add up stages, join parts."""
        places = self._places(ids)
        if torch.is_grad_enabled() or torch.compiler.is_compiling():
            pieces = functional.embedding(places, self._codewords())
        else:
            pieces = self._gathered_as_saved(places)
        if self.stages > 1:
            pieces = pieces.unflatten(1, (self.parts, self.stages)).sum(dim=2)
        vectors = pieces.reshape(ids.shape[0], self.dim)
        return vectors @ self.read("rotation") if self.rotated else vectors

    def _gathered_as_saved(self, places: Tensor) -> Tensor:
        """The codewords of places; narrow numbers are gathered, and widened afterwards."""
        saved = to_saved(self.codebooks, self.stored["codebooks"])
        saved = self._for_all_parts(saved).reshape(-1, saved.shape[-1])
        pieces = gathered(saved, places).to(self.output_dtype)
        if self.precision == "int8":
            pieces = pieces * self._for_all_parts(self.read("steps")).reshape(-1, 1)
        return pieces

    def score(self, hidden: Tensor) -> Tensor:
        """Score each codeword once, then add up a row's scores by its codes."""
        # On some processors a bag of scores for no hidden state at all is refused by torch.
        if not 0 < len(hidden) <= FEW:
            return super().score(hidden)
        if self.rotated:
            hidden = hidden @ self.read("rotation").to(hidden.dtype).T
        books = self._codewords().view(self.parts, -1, self.dim // self.parts)
        pieces = hidden.view(len(hidden), self.parts, books.shape[-1]).to(books.dtype)
        # With one hidden state the last stride is arbitrary, and a bag slow unless it is 1.
        scores = torch.einsum("npw,pkw->pkn", pieces, books).reshape(-1)
        scores = scores.view(books[..., 0].numel(), len(hidden))
        sums = [
            functional.embedding_bag(self._places(ids), scores, mode="sum")
            for ids in torch.arange(self.rows, device=hidden.device).split(BLOCK_ROWS)
        ]
        return torch.cat(sums).T
