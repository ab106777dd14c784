"""What a page is made of, without a browser: escaped, small, whole."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch

from smalti.analysis import Finding, Neighbours
from smalti.analysis.figures import Bars, HeatMap, Lines, Listing, Scatter, Series
from smalti.embeddings import CodedTable, build_compressor
from smalti.embeddings.tiers import tiers
from smalti.errors import ArtifactError, ShapeError
from smalti.report import Headline, Report, TableSubject, report_table, write_page
from smalti.report.drawing import draw
from smalti.report.drawing.scales import Scale, fitted
from smalti.report.token_index import token_index
from smalti.report.words import all_visible, visible


class Elements(HTMLParser):
    """Collects what a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the attributes; a script begins."""
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        """Keep the text of scripts; other text comes only before the first."""
        if self.scripts and self.lasttag == "script" and self.cdata_elem == "script":
            self.scripts[-1] += data


@pytest.fixture(scope="module")
def page(subject: TableSubject) -> str:
    return report_table(subject).html()


def test_a_hostile_vocabulary_adds_no_script_and_no_handler(page: str) -> None:
    seen = Elements(page)
    assert len(seen.scripts) == 2
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    assert "<script>window.harmed" not in page
    assert "\x00" not in page
    assert "\u202e" not in page
    page.encode("utf-8")


def test_only_our_own_script_may_run(page: str) -> None:
    seen = Elements(page)
    policy = next(v for name, v in seen.attributes if name == "content" and "default-src" in v)
    digest = base64.b64encode(hashlib.sha256(seen.scripts[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")


def test_the_page_asks_nobody_for_anything(page: str) -> None:
    sources = [v for name, v in Elements(page).attributes if name in {"src", "href"}]
    assert all(source.startswith(("data:image/png", "#")) for source in sources)
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest", page)


def test_data_holds_what_was_put_in(page: str, subject: TableSubject) -> None:
    data = json.loads(Elements(page).scripts[0])
    assert data["tokens"]["words"] == all_visible(subject.tokens, 400)
    assert data["tokens"]["words"][0] == "<script>window.harmed = 1</script>"
    assert "figure-0" not in data["figures"]  # Bars hold their numbers themselves.
    heat = [figure for figure in data["figures"].values() if figure["row"] == "codebook"]
    assert sum(heat[0]["values"][0]) == sum(len(t.ids) for t in tiers(subject.table)[1:])


def test_findings_and_headline_are_there_as_plain_data(subject: TableSubject) -> None:
    made = report_table(subject).as_dict()
    assert json.loads(json.dumps(made)) == made
    assert {
        "storage",
        "frequency_bands",
        "neighbours",
        "code_distribution",
        "entropy_and_information",
        "shared_codes",
        "rank",
    } <= made["findings"].keys()
    assert len(made["numbers"]) == 3


def test_a_table_alone_has_a_page_too(subject: TableSubject) -> None:
    made = report_table(TableSubject("alone", subject.table))
    assert "neighbours" not in made.as_dict()["findings"]
    assert made.html().startswith("<!doctype html>")


def test_words_that_are_asked_for_are_shown(subject: TableSubject) -> None:
    found = report_table(subject, words=["Monday", "guitar", "word7", "absent"])
    shared = next(finding for finding in found.findings if finding.name == "shared_codes")
    assert shared.numbers["words"] == ["monday", "Ġguitar", "word7"]


def test_the_original_of_another_model_is_refused(subject: TableSubject) -> None:
    other = TableSubject("x", subject.table, original=torch.zeros(400, 12))
    with pytest.raises(ShapeError, match="expected an original of 400 x 24"):
        report_table(other)


def test_what_can_not_be_seen_is_made_visible() -> None:
    assert visible("a\u200fb\x00") == "a⟨200f⟩b⟨0⟩"
    assert visible("plain ▁word") == "plain ▁word"
    assert len(visible("y" * 10_000)) < 100
    assert all_visible(["a", None, ""], 4) == ["a", "⟨row 1⟩", "⟨row 2⟩", "⟨row 3⟩"]


def test_codes_of_rare_rows_are_left_out_where_they_do_not_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("smalti.report.token_index.USUAL_BYTES", 1_400)
    codes = torch.arange(100).remainder(16)[:, None].expand(-1, 8)
    table = CodedTable.holding(codes, torch.zeros(8, 1, 16, 1), precision="float32")
    order = torch.arange(99, -1, -1)
    found = token_index([f"w{row}" for row in range(100)], tiers(table), order)
    kept = found["tiers"][0]["rows"]
    assert 0 < kept < 100
    marks = base64.b64decode(found["tier_of"]["data"])
    # The commonest are the last rows here.
    assert [mark >> 7 for mark in marks] == [0] * (100 - kept) + [1] * kept
    packed = base64.b64decode(found["tiers"][0]["codes"]["data"])
    assert len(packed) == 8 * kept
    assert packed[-8:] == bytes([99 % 16] * 8)


@pytest.mark.slow
def test_pages_of_usual_and_of_large_vocabularies_stay_small() -> None:
    generator = torch.Generator().manual_seed(0)
    books = torch.zeros(48, 1, 256, 1)
    for rows, limit in ((30_522, 5_000_000), (250_000, 20_000_000)):
        codes = torch.randint(256, (rows, 48), generator=generator)
        table = CodedTable.holding(codes, books, precision="float32")
        near = torch.randint(rows, (20_000, 10), generator=generator)
        cosines = torch.rand(20_000, 10, generator=generator)
        found = token_index(
            all_visible(
                ["x" * 10_000 if row % 1000 == 0 else f"token-{row}" for row in range(rows)], rows
            ),
            tiers(table),
            torch.arange(rows),
            counts=torch.arange(rows),
            cosines=torch.rand(rows, generator=generator),
            neighbours=Neighbours(torch.arange(20_000), near, near, cosines, cosines, rows),
        )
        made = Report(Headline("t", "s", []), [], tokens=found).html()
        # Figures take a quarter of a megabyte.
        assert len(made.encode()) < limit - 300_000
        assert found["tiers"][0]["rows"] > min(rows, 100_000) * 0.6


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    report = Report(Headline("t", "s", [("1", "one")]), [])
    place = write_page(report, tmp_path / "page.html")
    first = place.read_text()
    assert write_page(report, place).read_text() == first
    mine = tmp_path / "mine.html"
    mine.write_text("my own page")
    with pytest.raises(ArtifactError, match="holds something else"):
        write_page(report, mine)
    with pytest.raises(ArtifactError, match="can't write the page"):
        write_page(report, tmp_path / "nowhere" / "page.html")
    assert mine.read_text() == "my own page"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.html", "page.html"]


@pytest.mark.parametrize(
    "figure",
    [
        HeatMap("<b>t</b>", "r", "c", "v", ["<a>", "b"], ["x"], [[1.0], [None]]),
        Lines("t", "x", "y", [Series("<s>", [1, 2, 3], [1.0, None, 2.0])], log_y=True),
        Lines("t", "x", "y", [Series("", [5], [5.0])]),
        Scatter("t", "x", "y", [Series("s", [1], [1.0], ["<label>"])], log_x=True),
        Bars("t", "x", "y", ["<n>"], [Series("s", [0], [None])]),
        Bars("t", "x", "y", ["n"], [Series("s", [0], [-3.0])], 0.0, "<limit>"),
        Listing("t", ["<c>"], [["<cell>"], [None], [0.5]]),
    ],
    ids=lambda figure: figure.kind,
)
def test_figures_of_all_kinds_are_drawn_and_escaped(figure: HeatMap) -> None:
    made = Report(Headline("t", "s", []), [Finding("f", "t", "c", {}, [figure])]).html()
    assert re.search(r"<(a|s|n|label|limit|c|cell)>|<b>t", str(draw(figure, "k"))) is None
    assert "nan" not in str(draw(figure, "k"))
    assert "<figure" in made


def test_scales_put_numbers_where_they_belong() -> None:
    scale = Scale(0, 10, 100, 200)
    assert scale(2.5) == 125
    assert scale.ticks() == [0, 2, 4, 6, 8, 10]
    assert Scale(1, 100, 0, 10, log=True)(10) == pytest.approx(5)
    assert fitted([3.0, 3.0], 0, 1).low < 3 < fitted([3.0, 3.0], 0, 1).high
    assert fitted([], 0, 1).ticks()


def test_tiers_with_as_many_codes_are_told_apart() -> None:
    generator = torch.Generator().manual_seed(0)
    codes = {"compressor": "product", "num_codebooks": 4, "codebook_size": 8}
    method = build_compressor("partial", keep=60, kept=codes, rest=codes)
    counts = torch.arange(200, 0, -1)
    table = method.fit(torch.randn(200, 16, generator=generator), counts=counts)
    found = report_table(TableSubject("two tiers", table)).as_dict()["findings"]
    groups = found["code_distribution"]["numbers"]["groups"]
    assert list(groups) == ["4 codes of 8 (60 rows)", "4 codes of 8 (140 rows)"]
