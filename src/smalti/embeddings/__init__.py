"""A table of vectors becomes a smaller table: one file a method, one contract."""

from smalti.embeddings.base import (
    CompressedEmbedding,
    Compressor,
    build_compressor,
    build_table,
    compressors,
    tables,
)
from smalti.embeddings.coded import CodedTable
from smalti.embeddings.compositional import Compositional
from smalti.embeddings.differentiable import Differentiable
from smalti.embeddings.differentiable_table import DifferentiableEmbedding
from smalti.embeddings.full import Full, FullTable
from smalti.embeddings.integer import Integer, IntegerTable
from smalti.embeddings.low_rank import LowRank, LowRankTable
from smalti.embeddings.partial import Partial, PartialTable
from smalti.embeddings.product import Product
from smalti.embeddings.residual_codes import ResidualCodes
from smalti.embeddings.size import Size
from smalti.embeddings.sparse import Sparse, SparseTable
from smalti.embeddings.turned import Turned, TurnedTable
from smalti.embeddings.unknown import Unknown, UnknownTable

__all__ = [
    "CodedTable",
    "Compositional",
    "CompressedEmbedding",
    "Compressor",
    "Differentiable",
    "DifferentiableEmbedding",
    "Full",
    "FullTable",
    "Integer",
    "IntegerTable",
    "LowRank",
    "LowRankTable",
    "Partial",
    "PartialTable",
    "Product",
    "ResidualCodes",
    "Size",
    "Sparse",
    "SparseTable",
    "Turned",
    "TurnedTable",
    "Unknown",
    "UnknownTable",
    "build_compressor",
    "build_table",
    "compressors",
    "tables",
]
