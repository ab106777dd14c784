"""The report of a search: what ``smalti tune table`` or ``smalti tune codebook`` tried."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from smalti.analysis import codebook_balance, rate_distortion
from smalti.errors import ArtifactError, SmaltiError, require
from smalti.report.page import TIMES, Headline, Report


def read_search(path: Path, key: str = "trials") -> Mapping[str, Any]:
    """What ``smalti tune`` wrote, checked.

    Args:
        path: The file.
        key: What must be in it: ``trials`` of tables, or ``arms`` of codebooks.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ArtifactError(f"can't read {path}: {error}") from error
    require(
        isinstance(content, dict) and isinstance(content.get(key), list),
        f"{path} is no file that smalti tune wrote: it has no {key}",
        ArtifactError,
    )
    return dict(content)


def report_frontier(content: Mapping[str, Any], name: str) -> Report:
    """Analyse what was tried.

    Args:
        content: What ``smalti tune table`` writes.
        name: What to call it.
    """
    try:
        found = rate_distortion(content["trials"])
    except (SmaltiError, KeyError, TypeError) as error:
        raise ArtifactError(f"{name} is damaged: {error}") from error
    frontier = found.numbers["frontier"]
    best = content.get("best") or _balanced(frontier)
    wanted = "best within the budget" if content.get("best") else "a balanced choice"
    sentence = (
        f"Of {found.numbers['tried']} tables, {best['table']} is {wanted}: {best['percent']:.2f} % "
        f"of the float32 table at a loss of {best['drop_percent']:.2f} %."
    )
    numbers = [
        (f"{100 / best['percent']:.1f}{TIMES}", "smaller than as float32"),
        (f"{best['drop_percent']:.2f} %", "lost"),
        (f"{best['cosine']:.4f}", "cosine of outputs with the original's"),
    ]
    notes = [str(note) for note in content.get("notes", ())]
    return Report(
        Headline(str(content.get("model", name)), sentence, numbers), [found], notes=notes
    )


def report_study(content: Mapping[str, Any], name: str) -> Report:
    """Analyse codebooks of one capacity.

    Args:
        content: What ``smalti tune codebook`` writes.
        name: What to call it.
    """
    try:
        found = codebook_balance(content)
        means = {arm["name"]: arm["mean"] for arm in content["arms"]}
        best = means[content["best_fixed"]]
        numbers = [
            (str(content["best_fixed"]), "size and width of the best codebook"),
            (f"{best['mse_0_to_1']:.2g}", f"its squared error at {best['rate_bits']:.1f} bits"),
            (
                f"{content['more_bits_than_best_fixed']:+.1f}",
                "bits a place that the pool takes more",
            ),
        ]
    except (SmaltiError, KeyError, TypeError, IndexError) as error:
        raise ArtifactError(f"{name} is damaged: {error}") from error
    sentence = f"Of codebooks of one capacity, {content['best_fixed']} has the least error."
    data = content.get("data", {})
    notes = [f"Images: {data.get('source')}, {data.get('part')}; {content['steps']} steps."]
    title = f"{name}: {content.get('capacity')} numbers a codebook"
    return Report(Headline(title, sentence, numbers), [found], notes=notes)


def _balanced(frontier: list[dict[str, Any]]) -> dict[str, Any]:
    """The smallest that loses at most 2 %, else the one that loses least."""
    good = [trial for trial in frontier if trial["drop_percent"] <= 2]
    return good[0] if good else frontier[-1]
