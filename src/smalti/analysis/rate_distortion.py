"""What does each size cost: tables of all methods that were tried, by size and by loss?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from smalti.analysis.figures import Listing, Scatter, Series
from smalti.analysis.finding import Finding
from smalti.errors import DataError, require

NEEDED = ("table", "percent", "bytes", "cosine", "drop_percent", "spec")
# A table that loses nothing has no place on an axis of factors.
LEAST_DROP = 1e-3


def rate_distortion(trials: Sequence[Mapping[str, Any]]) -> Finding:
    """Size against loss over methods, and the tables that no other beats.

    Args:
        trials: What ``smalti tune table`` writes of each table that was tried.
    """
    require(len(trials) > 0, "expected at least one table that was tried, got none", DataError)
    for trial in trials:
        missing = [name for name in NEEDED if name not in trial]
        require(not missing, f"a trial lacks {', '.join(missing)}: it is another file", DataError)
    ordered = sorted(trials, key=lambda trial: (trial["bytes"], trial["drop_percent"]))
    best: list[Mapping[str, Any]] = []
    for trial in ordered:
        if not best or trial["drop_percent"] < best[-1]["drop_percent"]:
            best.append(trial)
    methods = dict.fromkeys(method_of(trial) for trial in ordered)
    smallest, closest = best[0], best[-1]
    scored = any(trial.get("score") is not None for trial in trials)
    columns = ("percent", "bytes", "cosine", *(["score"] if scored else []), "drop_percent")
    return Finding(
        name="rate_distortion",
        title="What does each size cost?",
        caption=(
            f"Of {len(trials)} tables, {len(best)} are beaten by none of their size: from "
            f"{smallest['percent']:.2f} % of float32 at a loss of {smallest['drop_percent']:.2f} % "
            f"to {closest['percent']:.2f} % at {closest['drop_percent']:.2f} %."
        ),
        numbers={
            "tried": len(trials),
            "frontier": [{name: trial[name] for name in ("table", *columns)} for trial in best],
        },
        figures=[
            Scatter(
                title="Loss by size, a point for each table that was tried",
                x_title="% of the float32 table",
                y_title="% lost",
                series=[
                    _series(method, [t for t in ordered if method_of(t) == method])
                    for method in methods
                ],
                joined=_series("beaten by none", best),
                log_x=True,
                log_y=True,
            ),
            Listing(
                "All tables that were tried; a star marks those that none beats",
                ("", *(name.replace("_", " ") for name in columns), "table"),
                [
                    ("*" if t in best else "", *(t[name] for name in columns), t["table"])
                    for t in ordered
                ],
            ),
        ],
    )


def method_of(trial: Mapping[str, Any]) -> str:
    """The method of a trial in a word or two.

    Example:
        >>> method_of({"spec": {"compressor": "turned", "rest": {"compressor": "product"}}})
        'turned product'
    """
    spec = trial["spec"]
    words = []
    while isinstance(spec, Mapping) and spec.get("compressor") in {"turned", "partial"}:
        words.append("tiers" if spec["compressor"] == "partial" else "turned")
        spec = spec.get("rest")
    if "tiers" not in words or (isinstance(spec, Mapping) and spec["compressor"] != "product"):
        words.append(str(spec["compressor"] if isinstance(spec, Mapping) else spec))
    if trial.get("taught"):
        words.append("taught")
    return " ".join(dict.fromkeys(words)).replace("_", " ")


def _series(name: str, trials: Sequence[Mapping[str, Any]]) -> Series:
    return Series(
        name,
        [trial["percent"] for trial in trials],
        [max(LEAST_DROP, trial["drop_percent"]) for trial in trials],
        [trial["table"] for trial in trials],
    )
