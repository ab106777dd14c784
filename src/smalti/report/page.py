"""Findings become one HTML page that needs nothing else: no network, no other file.

Whatever comes from data is escaped: templates escape by themselves, and JSON holds no sign that
a browser could take for the end of its element. The page's policy lets no other script run than
its own, told by its checksum.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from smalti import __version__
from smalti.analysis import Finding
from smalti.report.drawing import draw, numbers_behind, numbers_of

# Of pages about codes.
CHAPTERS: dict[str, tuple[str, ...]] = {
    "What was gained": ("storage", "rate_distortion", "codebook_balance"),
    "What was lost": ("reconstructions", "frequency_bands", "coverage", "neighbours"),
    "What the codes look like": (
        "code_distribution",
        "shared_codes",
        "entropy_and_information",
        "rank",
    ),
    "How it learned": ("training_curves", "change_rate"),
}
# In a script element these could end it, or begin something else.
DANGEROUS = {sign: f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
# Behind a factor.
TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True)
class Headline:
    """The first screen.

    Args:
        title: What is reported.
        sentence: What was gained and lost.
        numbers: Three numbers, each with what it is.
    """

    title: str
    sentence: str
    numbers: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Report:
    """All that a page shows.

    Args:
        headline: The first screen.
        findings: In any order; a page sorts them into chapters.
        tokens: What the search box knows; None where there are no tokens.
        mosaic: A PNG file in base64 for the head of the page: codes as coloured tiles.
        notes: What the reader should know about where this comes from.
        chapters: Which findings stand together, by their names, and in which order.
    """

    headline: Headline
    findings: Sequence[Finding]
    tokens: dict[str, Any] | None = None
    mosaic: str | None = None
    notes: Sequence[str] = field(default=())
    chapters: Mapping[str, Sequence[str]] = field(default_factory=lambda: CHAPTERS)

    def as_dict(self) -> dict[str, Any]:
        """All findings as plain data."""
        return {
            "title": self.headline.title,
            "headline": self.headline.sentence,
            "numbers": [{"value": value, "what": what} for value, what in self.headline.numbers],
            "findings": {finding.name: finding.as_dict() for finding in self.findings},
            "notes": list(self.notes),
        }

    def html(self) -> str:
        """The page."""
        keys = {id(figure): f"figure-{number}" for number, figure in enumerate(self._figures())}
        behind = {
            keys[id(figure)]: numbers
            for figure in self._figures()
            if (numbers := numbers_behind(figure)) is not None
        }
        script = _text("page.js")
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
        return (
            _environment()
            .get_template("page.html")
            .render(
                report=self,
                chapters=self._chapters(),
                key=lambda figure: keys[id(figure)],
                draw=draw,
                numbers_of=numbers_of,
                data=_json({"figures": behind, "tokens": self.tokens}),
                script=Markup(script),
                style=Markup(_text("page.css")),
                digest=digest,
                version=__version__,
            )
        )

    def _figures(self) -> list[Any]:
        return [figure for finding in self.findings for figure in finding.figures]

    def _chapters(self) -> dict[str, list[Finding]]:
        placed = [name for names in self.chapters.values() for name in names]
        others = [one for one in self.findings if not any(_is(one.name, name) for name in placed)]
        chapters = {
            title: [one for name in names for one in self.findings if _is(one.name, name)]
            for title, names in self.chapters.items()
        }
        return {title: ones for title, ones in {**chapters, "More": others}.items() if ones}


def _is(name: str, kind: str) -> bool:
    """Whether a finding is of a kind; there may be several, with something behind their names."""
    return name == kind or name.startswith(f"{kind}_")


def _json(content: Any) -> Markup:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    for sign, escaped in DANGEROUS.items():
        text = text.replace(sign, escaped)
    return Markup(text)


@cache
def _text(name: str) -> str:
    return (files("smalti.report") / "templates" / name).read_text(encoding="utf-8")


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_text),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
