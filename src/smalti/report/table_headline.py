"""What was gained and what was lost, in a sentence and three numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from smalti.analysis import Finding
from smalti.report.page import TIMES, Headline


def table_headline(
    name: str, findings: Sequence[Finding], figures: Mapping[str, Any], cosines: Tensor | None
) -> Headline:
    """The first screen of a table's report.

    Args:
        name: What to call it.
        findings: What was found.
        figures: What was measured of the model.
        cosines: Of the rows with the original's.
    """
    numbers = {finding.name: finding.numbers for finding in findings}
    size = numbers["storage"]
    small, dense = megabytes(size["bytes"]), megabytes(size["float32_bytes"])
    gained = f"The embedding table takes {small} instead of {dense}"
    big = [(f"{size['times_smaller']:.1f}{TIMES}", "smaller than as float32")]
    lost = _lost(figures, numbers, cosines)
    big.extend((value, what) for value, what, _ in lost)
    sentence = ", and ".join([gained, *(told for _, _, told in lost[:1])])
    if len(big) < 3:
        big.append((f"{size['bytes'] / size['rows']:.1f}", "bytes a row"))
    if len(big) < 3 and "code_distribution" in numbers:
        used = numbers["code_distribution"]["used_share"]
        big.append((f"{used:.1%}", "of the codewords are in use"))
    if len(big) < 3:
        big.append((f"{size['rows']:,}", "rows"))
    return Headline(name, f"{sentence}.", big[:3])


def _lost(
    figures: Mapping[str, Any],
    numbers: Mapping[str, Mapping[str, Any]],
    cosines: Tensor | None,
) -> list[tuple[str, str, str]]:
    """Numbers of what was lost, what they are, and the same in half a sentence."""
    lost = []
    score, before = figures.get("score"), figures.get("original_score")
    if score is not None and before is not None:
        told = f"the model scores {score:.2f} where the original scores {before:.2f}"
        lost.append((f"{score - before:+.2f}", "change of the labelled score", told))
    cosine = figures.get("output_cosine")
    if cosine is not None:
        # The texts of the page may be others, and the model may not be at hand to run on them.
        told = (
            f"the model's outputs kept a cosine of {cosine:.4f} with the original's when it was "
            "compressed"
        )
        lost.append((f"{cosine:.4f}", "cosine of outputs when it was compressed", told))
    if "neighbours" in numbers:
        kept = numbers["neighbours"]["mean_overlap"]
        told = f"{kept:.1%} of the nearest neighbours of its rows stay"
        lost.append((f"{kept:.1%}", "of nearest neighbours stay", told))
    if len(lost) < 2 and cosines is not None:
        bands = numbers.get("frequency_bands")
        mean = bands["mean_cosine_by_use"] if bands else float(cosines.double().mean())
        how = ", by use" if bands else ""
        told = f"its rows keep a cosine of {mean:.4f} with the original's"
        lost.insert(0, (f"{mean:.4f}", f"cosine of rows with the original's{how}", told))
    return lost


def megabytes(size: float) -> str:
    """Bytes for people.

    Example:
        >>> megabytes(46_881_792), megabytes(512)
        ('46.9 MB', '512 bytes')
    """
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size:.0f} bytes"
