"""How did it learn: losses, the gradient gap and the choice of codebooks over time?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from smalti.analysis.figures import Lines, Series
from smalti.analysis.finding import Finding
from smalti.errors import DataError, require

# Points of a drawn line; more can't be told apart.
MOST_POINTS = 200
# The shares of an adaptive pool's codebooks end in this and a number.
SHARE = "share/"
GAP = "relative_gradient_gap"


def training_curves(journal: Sequence[Mapping[str, Any]], stage: str = "training") -> Finding:
    """The figures of a run's journal over its steps.

    Args:
        journal: Its lines, as ``read_journal`` gives them.
        stage: What was trained.
    """
    curves: dict[str, dict[str, list[float]]] = {}
    for line in journal:
        kind = str(line.get("kind"))
        for name, value in line.get("metrics", {}).items():
            if isinstance(value, (int, float)):
                curve = curves.setdefault(f"{kind}: {name}", {"step": [], "value": []})
                curve["step"].append(float(line["step"]))
                curve["value"].append(float(value))
    require(bool(curves), "expected a journal with figures, got none", DataError)
    figures = [
        Lines(title, "step", y_title, [_series(label, curves[name]) for name, label in those])
        for title, y_title, those in _groups(list(curves))
    ]
    steps = int(max(curve["step"][-1] for curve in curves.values()))
    loss = next(
        (name for name in curves if name.endswith("likelihood_loss") and "evaluate" in name),
        next((name for name in curves if "loss" in name), next(iter(curves))),
    )
    values = curves[loss]["value"]
    return Finding(
        name="training_curves",
        title=f"How did {stage} go?",
        caption=(
            f"In {steps:,} steps {_words(loss.split(': ')[1])} went from {values[0]:.4g} to "
            f"{values[-1]:.4g}{_gap(curves)}."
        ),
        numbers={
            name: {"first": curve["value"][0], "last": curve["value"][-1], **curve}
            for name, curve in curves.items()
        },
        figures=figures,
    )


def _gap(curves: Mapping[str, Mapping[str, list[float]]]) -> str:
    gaps = [curve["value"] for name, curve in curves.items() if name.endswith(GAP)]
    if not gaps:
        return ""
    return f"; the gradient gap went from {gaps[0][0]:.1%} to {gaps[0][-1]:.1%}"


def _groups(names: list[str]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Figures of the same sort on the same axes: title, axis, and curves with their labels."""
    sorts = (
        ("Losses", "loss", lambda leaf: "loss" in leaf),
        ("Choice of codebooks", "share of vectors", lambda leaf: SHARE in leaf),
        ("Gradient gap, relative to the gradient without codes", "gap", lambda leaf: leaf == GAP),
        ("Perplexity of codes", "codes", lambda leaf: "perplexity" in leaf),
        ("Distortion of codes", "squared error", lambda leaf: "distortion" in leaf),
        ("Error of reconstructions", "squared error, 0 to 1", lambda leaf: leaf == "mse_0_to_1"),
    )
    groups = []
    for title, y_title, fits in sorts:
        those = [(name, _label(name)) for name in names if fits(name.split(": ")[1])]
        if those:
            groups.append((title, y_title, those))
    return groups


def _label(name: str) -> str:
    kind, leaf = name.split(": ")
    return f"{_words(leaf)}{', held out' if kind == 'evaluate' else ''}"


def _words(leaf: str) -> str:
    return leaf.replace("_", " ").replace("share/", "codebook ").replace("/", " ")


def _series(label: str, curve: Mapping[str, list[float]]) -> Series:
    step = -(-len(curve["step"]) // MOST_POINTS)
    places = [*range(0, len(curve["step"]) - 1, step), len(curve["step"]) - 1]
    return Series(label, [curve["step"][i] for i in places], [curve["value"][i] for i in places])
