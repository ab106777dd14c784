"""docs/papers.md: every claim with what was measured and the verdict, made from results alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from smalti.analysis.figures import Figure
from smalti.artifacts import write_file
from smalti.errors import ArtifactError, require
from smalti.experiments.claims import Word
from smalti.experiments.drawings import FOLDER, drawings, figures_of
from smalti.experiments.summary import shown, summary
from smalti.experiments.table import Scale, Table

OPENING = """# What the papers say, and what we measured

This page is made by `smalti reproduce --page docs/papers.md` from the files in results/; do not
edit it. Each table names its scale: `laptop` is sized for two cores, so absolute numbers differ
from the papers', and only what is compared within a table can be trusted. Numbers are means over
seeds, with the standard deviation in brackets. A claim holds where all of its comparisons come
out and no seeds overlap, and in part where some do or only means come out in the right order.
A claim has to show itself: where no mean comes out it does not hold, whether or not seeds overlap.
Arms that share a fine-tuned model, and metrics of one arm, are compared seed by seed.
A claim can't be tested where its data are not to be had, or where its premise fails, such as
that models have learned something. The column of seeds has the fewest of the arms that are
compared: with one, a verdict is a first finding. What is not in a paper is our own question.
What is wrong or silent in the papers beside their tables is in
[papers-notes.md](papers-notes.md).
"""
# Of verdicts: what was found out comes first.
ORDER: tuple[Word, ...] = get_args(Word)


def check_page(path: Path) -> None:
    """Refuse a place where something else than such a page and its figures would be lost.

    Args:
        path: Of the page.
    """
    opening = OPENING.partition("\n")[0]
    require(
        not path.exists() or path.read_text(errors="replace").startswith(opening),
        f"{path} holds something else: choose another file",
        ArtifactError,
    )
    figures = path.parent / FOLDER
    require(
        not figures.exists() or figures.is_dir(),
        f"can't write figures beside {path}: {figures} is a file",
        ArtifactError,
    )


def write_page(path: Path, tables: Iterable[Table], scale: Scale, folder: Path) -> None:
    """Write the page, and its figures into a folder beside it.

    Args:
        path: Of the page.
        tables: All that are to stand in it.
        scale: Whose results.
        folder: Where they lie.
    """
    every = list(tables)
    for name, drawing in drawings(every, scale, folder).items():
        place = path.parent / FOLDER / name
        place.parent.mkdir(parents=True, exist_ok=True)
        write_file(place, drawing)
    write_file(path, page(every, scale, folder))


def page(tables: Iterable[Table], scale: Scale, folder: Path) -> str:
    """The whole page as Markdown.

    Args:
        tables: All that are to stand in it.
        scale: Whose results.
        folder: Where they lie.
    """
    every = list(tables)
    summaries = [summary(table, scale, folder) for table in every]
    parts = [OPENING, "\n".join(_verdicts(summaries))]
    for paper in dict.fromkeys(table.paper for table in every):
        parts.append(f"## {paper[0].upper()}{paper[1:]}")
        for table, one in zip(every, summaries, strict=True):
            if table.paper == paper:
                parts.append("\n".join(_section(one, figures_of(table, scale, folder))))
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _verdicts(summaries: list[dict[str, Any]]) -> Iterator[str]:
    claims = [(claim, one["table"]) for one in summaries for claim in one["claims"]]
    counts = Counter(claim["verdict"] for claim, _ in claims)
    words = ", ".join(f"{word} {counts[word]}" for word in ORDER if counts[word])
    yield f"{len(claims)} claims: {words}."
    yield ""
    yield "| claim | verdict | seeds | measured in |"
    yield "|---|---|---|---|"
    for claim, table in sorted(claims, key=lambda pair: ORDER.index(pair[0]["verdict"])):
        seeds = claim["seeds"] or ""
        yield f"| {claim['claim']} | **{claim['verdict']}** | {seeds} | [{table}](#{table}) |"


def _section(one: dict[str, Any], figures: Mapping[str, Figure]) -> Iterator[str]:
    yield f"### {one['table']}"
    yield ""
    yield f"{one['title']} ({one['where']}). Scale: {one['scale']}."
    yield from one["caveats"]
    if one["unit"]:
        yield f"The paper's numbers: {one['unit']}."
    yield ""
    if one["untestable"]:
        yield f"Can't be tested here: {one['untestable']}."
        yield ""
    elif any(row["seeds"] for row in one["arms"]):
        yield from _rows(one)
        for name in figures:
            yield f"![{name.removesuffix('.svg').replace('-', ' ')}]({FOLDER}/{name})"
            yield ""
    else:
        yield (
            f"Not measured yet: `smalti reproduce {one['table']} --scale {one['scale']}` runs its "
            f"{len(one['arms'])} arms, about {one['minutes']:g} minutes each."
        )
        yield ""
    for claim in one["claims"]:
        yield f"- **{claim['verdict']}**: {claim['claim']} {claim['why']}".rstrip()
        for line in claim["evidence"]:
            yield f"  - {line}"


def _rows(one: dict[str, Any]) -> Iterator[str]:
    labels = [metric["label"] for metric in one["metrics"]]
    yield "| arm | seeds | " + " | ".join(labels) + " |"
    yield "|---" * (2 + len(labels)) + "|"
    for row in one["arms"]:
        cells = [
            shown(row["metrics"][metric["name"]], row["reported"].get(metric["name"]))
            for metric in one["metrics"]
        ]
        yield f"| {row['arm']} | {row['seeds']} | " + " | ".join(cells) + " |"
    yield ""
    for row in one["arms"]:
        if row["listing"]:
            yield from _listing(row["arm"], row["listing"])


def _listing(arm: str, listing: dict[str, Any]) -> Iterator[str]:
    yield f"{arm}, the first seed:"
    yield ""
    yield f"| {' | '.join(listing['columns'])} |"
    yield "|---" * len(listing["columns"]) + "|"
    for row in listing["rows"]:
        cells = (str(cell).replace("|", "\\|") for cell in row)
        yield f"| {' | '.join(cells)} |"
    yield ""
