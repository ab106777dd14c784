"""The contract that every translator keeps: ids of sentences in, ids of sentences out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import nullcontext
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from smalti.errors import ConfigError, DataError, ShapeError, require
from smalti.layers.modes import evaluating
from smalti.quantizers.settings import count, flag, number
from smalti.registry import Registry
from smalti.specs import as_plain, build_from, setting_names
from smalti.translation.decoding import Decoding
from smalti.translation.encoding import SourceEncoder
from smalti.translation.ids import EOS, MARKS, PAD
from smalti.translation.tables import WordTables

# Tables are objects that a spec can't make; whoever builds a model hands them in.
HANDED_IN = "tables"


class Translator(nn.Module, ABC):
    """A model of sentences in one language given sentences in another.

    Sentences are ids ``(batch, length)``; each ends in EOS and is padded with PAD. A
    constructor stores each argument under its own name; ``spec`` and ``build_translator``
    rely on it, and leave out ``tables``, which are handed in.

    Args:
        vocabulary: How many tokens there are, those that are no words included.
        dim: Width of the vectors.
        depth: Layers that read the source.
        decoder_depth: Layers that write the target.
        heads: Views that attention takes; must divide ``dim``.
        ratio: How many times wider the hidden dense layers are.
        dropout: Share of what layers put out that is dropped in training.
        label_smoothing: The share of a label that is spread over all tokens.
        tied: Whether source, target and output share one table.
        tables: Tables in the place of full ones, see ``WordTables``.
    """

    example: ClassVar[Mapping[str, Any]] = {}
    """Settings of a small instance besides the vocabulary, for the contract suite."""

    def __init__(
        self,
        vocabulary: int,
        dim: int,
        depth: int,
        decoder_depth: int,
        heads: int,
        ratio: int,
        dropout: float,
        label_smoothing: float,
        tied: bool,
        tables: Mapping[str, nn.Module] | None,
    ) -> None:
        super().__init__()
        self.vocabulary = count("vocabulary", vocabulary, least=len(MARKS) + 2)
        self.dim = count("dim", dim)
        self.depth = count("depth", depth)
        self.decoder_depth = count("decoder_depth", decoder_depth)
        self.heads, self.ratio = count("heads", heads), count("ratio", ratio)
        self.dropout = number("dropout", dropout, least=0, below=1)
        self.label_smoothing = number("label_smoothing", label_smoothing, least=0, below=1)
        self.tied = flag("tied", tied)
        self.words = WordTables(self.vocabulary, self.dim, self.tied, tables)
        self.encoder = SourceEncoder(dim, depth, heads, ratio, self.dropout)

    @abstractmethod
    def _loss(
        self, source: Tensor, target: Tensor, progress: float
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """See ``loss``; everything is checked."""

    @abstractmethod
    def _translate(
        self, source: Tensor, options: Decoding, rescore_with: Translator | None
    ) -> list[list[int]]:
        """See ``translate``; everything is checked, and marks may be left in."""

    def loss(
        self, source: Tensor, target: Tensor, *, progress: float = 1.0
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """What to minimise, a mean over the target's tokens, and what to report.

        Args:
            source: Sentences.
            target: Their translations.
            progress: The share of training that is done, which warm-ups go by.
        """
        self._check(source, target)
        return self._loss(source, target, number("progress", progress, least=0, most=1))

    def forward(
        self, source: Tensor, target: Tensor, *, progress: float = 1.0
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """``loss``, for wrappers of modules such as data-parallel ones."""
        return self.loss(source, target, progress=progress)

    def translate(
        self,
        source: Tensor,
        options: Decoding | None = None,
        *,
        rescore_with: Translator | None = None,
    ) -> list[list[int]]:
        """Translations as lists of ids, in the order of the batch, without marks.

        Args:
            source: Sentences.
            options: How to look for translations; greedy by default.
            rescore_with: Who chooses where several translations are made (``samples``,
                ``lengths``): a model that can ``score``.
        """
        options = options or Decoding()
        self._check(source)
        mode = evaluating(self) if self.training else nullcontext()
        with torch.inference_mode(), mode:
            found = self._translate(source, options, rescore_with)
        found = [[token for token in one if token not in MARKS] for one in found]
        return [without_repeats(one) for one in found] if options.clean_repeats else found

    def score(self, source: Tensor, target: Tensor) -> Tensor:
        """The log-probability ``(batch,)`` of each target, its end included."""
        del source, target
        raise ConfigError(
            f"a {translators.name_of(type(self))} model can't tell how likely a translation is; "
            "score with an autoregressive one"
        )

    def spec(self) -> dict[str, Any]:
        """The settings as plain data; ``build_translator`` is the inverse."""
        names = [name for name in setting_names(type(self)) if name != HANDED_IN]
        settings = {name: as_plain(getattr(self, name)) for name in names}
        return {"translator": translators.name_of(type(self)), **settings}

    def extra_repr(self) -> str:
        """The settings, as ``print`` shows them."""
        settings = self.spec()
        return ", ".join(f"{key}={value}" for key, value in settings.items() if key != "translator")

    def _check(self, source: Tensor, target: Tensor | None = None) -> None:
        for name, ids in (("source", source), ("target", target)):
            if ids is None:
                continue
            require(
                ids.dim() == 2 and ids.dtype == torch.int64 and ids.numel() > 0,
                f"expected {name} ids (batch, length) int64, at least one of them, got "
                f"{tuple(ids.shape)} {ids.dtype}",
                ShapeError,
            )
            low, high = (int(edge) for edge in torch.aminmax(ids))
            require(
                low >= 0 and high < self.vocabulary,
                f"expected {name} ids from 0 to {self.vocabulary - 1}, got {low} to {high}: were "
                "they made with another vocabulary?",
                DataError,
            )
            require(
                bool((ids[:, 0] != PAD).all()),
                f"a {name} is padding alone: every sentence must end in the id {EOS}",
                DataError,
            )
        require(
            target is None or len(source) == len(target),
            f"expected as many targets as sources, got {len(source)} and "
            f"{None if target is None else len(target)}",
            ShapeError,
        )


translators: Registry[Translator] = Registry("translator")


def build_translator(spec: Mapping[str, Any] | str, **more: Any) -> Translator:
    """Make a translator from a spec, or from a registered name and settings.

    Example:
        >>> build_translator("autoregressive", vocabulary=100, dim=32).depth
        3
    """
    built: Translator = build_from(translators, "translator", spec, more)
    return built


def without_repeats(ids: list[int]) -> list[int]:
    """Ids of which none equals the one before it.

    Example:
        >>> without_repeats([5, 5, 7, 5, 7, 7])
        [5, 7, 5, 7]
    """
    return ids[:1] + [after for before, after in pairwise(ids) if after != before]
