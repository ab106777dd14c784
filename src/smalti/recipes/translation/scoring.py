"""How near translations are to those that people made: BLEU and chrF, by sacreBLEU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

from smalti.errors import MissingExtraError, ShapeError, require


@dataclass(frozen=True)
class Score:
    """The scores of a set of translations, detokenised, each from 0 to 100.

    Args:
        bleu: Corpus BLEU.
        chrf: Corpus chrF2.
        length_ratio: Words of the translations over those of the references; below 1 BLEU is
            lowered for it.
        bleu_signature: What makes two BLEU scores comparable.
        chrf_signature: The same of chrF.
    """

    bleu: float
    chrf: float
    length_ratio: float
    bleu_signature: str
    chrf_signature: str

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def score(translations: Sequence[str], references: Sequence[str]) -> Score:
    """Score translations, one reference each."""
    require(
        len(translations) == len(references) and len(references) > 0,
        f"expected a translation for each of {len(references)} references, at least one, got "
        f"{len(translations)}",
        ShapeError,
    )
    metrics = _library()
    bleu, chrf = metrics.BLEU(), metrics.CHRF()
    found = bleu.corpus_score(list(translations), [list(references)])
    return Score(
        bleu=found.score,
        chrf=chrf.corpus_score(list(translations), [list(references)]).score,
        length_ratio=found.sys_len / found.ref_len if found.ref_len else 0.0,
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
    )


def _library() -> Any:
    try:
        return import_module("sacrebleu.metrics")
    except ImportError as error:
        raise MissingExtraError(
            f"scores need the package sacrebleu: pip install 'smalti[translation]' ({error})"
        ) from error
