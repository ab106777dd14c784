"""All verdicts as one HTML page with a figure for each table that was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

from smalti.analysis import Finding
from smalti.analysis.figures import Figure, Listing
from smalti.experiments.claims import Word
from smalti.experiments.drawings import by_arm, figures_of
from smalti.experiments.summary import shown, summary
from smalti.experiments.table import Scale, Table
from smalti.report import Headline, Report

# Counted at the head of the page.
TELLING: tuple[Word, ...] = ("holds", "does not hold")
# Of several claims.
SEVERAL: dict[Word, str] = {
    "holds": "hold",
    "holds in part": "hold in part",
    "does not hold": "do not hold",
    "not measured yet": "are not measured yet",
}
TITLE = "What the papers say, and what we measured"


def report_of(tables: Iterable[Table], scale: Scale, folder: Path) -> Report:
    """The page of all tables: verdicts, numbers beside the papers', figures.

    Args:
        tables: All that are to stand in it.
        scale: Whose results.
        folder: Where they lie.
    """
    every = list(tables)
    summaries = [summary(table, scale, folder) for table in every]
    counts = Counter(claim["verdict"] for one in summaries for claim in one["claims"])
    said = ", ".join(
        f"{counts[word]} {SEVERAL.get(word, word)}" for word in get_args(Word) if counts[word]
    )
    papers = dict.fromkeys(one["paper"] for one in summaries)
    numbers = [(str(sum(counts.values())), "claims")]
    numbers += [(str(counts[word]), SEVERAL[word]) for word in TELLING]
    return Report(
        Headline(
            TITLE, f"Of {sum(counts.values())} claims of {len(papers)} papers: {said}.", numbers
        ),
        [
            _finding(one, list(figures_of(table, scale, folder).values()))
            for table, one in zip(every, summaries, strict=True)
        ],
        notes=[f"Scale: {scale}. A verdict on one seed is a first finding."],
        chapters={
            f"{paper[0].upper()}{paper[1:]}": [
                one["table"] for one in summaries if one["paper"] == paper
            ]
            for paper in papers
        },
    )


def _finding(one: dict[str, Any], drawn: list[Figure]) -> Finding:
    caption = f"The paper's numbers: {one['unit']}." if one["unit"] else ""
    if one["untestable"]:
        caption = f"Can't be tested here: {one['untestable']}."
    elif not any(row["seeds"] for row in one["arms"]):
        caption = f"Not measured yet: smalti reproduce {one['table']} --scale {one['scale']}."
    return Finding(
        one["table"],
        f"{one['title']} ({one['where']})",
        " ".join([*one["caveats"], caption]).rstrip(),
        one,
        tuple(_figures(one, drawn)),
    )


def _figures(one: dict[str, Any], drawn: list[Figure]) -> Iterator[Figure]:
    if any(row["seeds"] for row in one["arms"]):
        first = by_arm(one, one["metrics"][0]["name"])
        yield from drawn or ([] if first is None else [first])
        yield Listing(
            "Means over seeds, with the standard deviation in brackets",
            ["arm", "seeds", *(metric["label"] for metric in one["metrics"])],
            [
                [
                    row["arm"],
                    row["seeds"],
                    *(
                        shown(row["metrics"][metric["name"]], row["reported"].get(metric["name"]))
                        for metric in one["metrics"]
                    ),
                ]
                for row in one["arms"]
            ],
        )
    yield Listing(
        "Claims",
        ["claim", "verdict", "seeds", "why"],
        [
            [
                f"{claim['claim']} {claim['why']}".rstrip(),
                claim["verdict"],
                claim["seeds"] or None,
                "; ".join(claim["evidence"]),
            ]
            for claim in one["claims"]
        ],
    )
