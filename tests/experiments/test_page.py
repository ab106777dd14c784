"""The page of verdicts is what the results give, no more and no less."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from smalti.analysis.figures import Lines, Scatter
from smalti.cli.main import app
from smalti.errors import ArtifactError, ConfigError, SmaltiError
from smalti.experiments import Result, known_tables, table_named
from smalti.experiments.drawings import drawings, figures_of
from smalti.experiments.figures import Against, ByArm, OverSteps, PartsOverSteps
from smalti.experiments.page import page, write_page
from smalti.experiments.report_page import report_of
from smalti.experiments.results import read_results, write_result
from smalti.experiments.table import declare

ROOT = Path(__file__).parent.parent.parent
TABLE = table_named("depthwise-likelihood")


def add_results(folder: Path, arm: str, numbers: list[float], **details: Any) -> None:
    """Results of an arm as a run would leave them, one a seed."""
    own = TABLE.arm(arm)
    for seed, number in enumerate(numbers):
        result = Result(
            table=TABLE.name,
            arm=arm,
            scale="laptop",
            seed=seed,
            spec={},
            spec_hash=TABLE.spec_hash(own, "laptop"),
            source_hash="",
            metrics={"bits_per_dim": number, "mse": number / 10},
            timings={},
            details=details,
            seconds=1.0,
            machine={},
            versions={},
        )
        write_result(folder, TABLE, own, result)


def test_the_committed_page_is_what_the_results_give() -> None:
    made = page(known_tables(), "laptop", ROOT / "results")
    assert (ROOT / "docs" / "papers.md").read_text() == made, (
        "run: smalti reproduce --page docs/papers.md"
    )


def test_the_committed_figures_are_what_the_results_give() -> None:
    made = drawings(known_tables(), "laptop", ROOT / "results")
    committed = {path.name: path.read_text() for path in (ROOT / "docs" / "figures").glob("*.svg")}
    assert committed == made, "run: smalti reproduce --page docs/papers.md"


def test_every_claim_can_be_decided_or_says_why_not() -> None:
    claims = [claim for table in known_tables() for claim in table.claims_at("laptop")]
    assert len(claims) >= 25
    assert len({claim.sentence for claim in claims}) == len(claims)


def test_a_page_has_means_spreads_verdicts_and_a_figure(tmp_path: Path) -> None:
    results = tmp_path / "results"
    add_results(results, "depthwise 5 x 64", [5.0, 5.2])
    add_results(results, "repeated 5 x 64", [5.4])
    add_results(results, "residual 5 x 64", [5.0])
    add_results(results, "plain VQ 181, 16 x 16", [5.6])
    write_page(tmp_path / "docs" / "verdicts.md", [TABLE], "laptop", results)
    text = (tmp_path / "docs" / "verdicts.md").read_text()
    # By hand: the mean of 5.0 and 5.2 is 5.1, their standard deviation 0.1414.
    assert "5.1 (0.14)" in text
    # 2.52 nats in bits, of an arm that was not measured.
    assert "-; paper 3.636" in text
    # Better than two of three.
    assert "**holds in part**: At the same nominal rate" in text
    name = f"{TABLE.name}-bits-per-dim.svg"
    assert f"(figures/{name})" in text
    drawn = (tmp_path / "docs" / "figures" / name).read_text()
    # Four arms were measured, one with a spread.
    shapes = [element.tag.rpartition("}")[2] for element in ElementTree.fromstring(drawn).iter()]
    assert shapes.count("circle") == 4


def test_a_metric_is_drawn_over_another_with_a_colour_for_names_that_begin_alike(
    tmp_path: Path,
) -> None:
    add_results(tmp_path, "plain VQ 64", [5.0])
    add_results(tmp_path, "plain VQ 181, 16 x 16", [4.0])
    add_results(tmp_path, "depthwise 5 x 64", [3.0, 4.0])
    table = dataclasses.replace(TABLE, drawn=(Against("bits_per_dim", "mse"),))
    (figure,) = figures_of(table, "laptop", tmp_path).values()
    assert isinstance(figure, Scatter)
    points = {one.name: (one.x, one.y, one.labels) for one in figure.series}
    # By hand: the mean of the seeds is 3.5, and errors are a tenth.
    assert points == {
        "depthwise": ([0.35], [3.5], ["depthwise 5 x 64"]),
        "plain VQ": ([0.4, 0.5], [4.0, 5.0], ["plain VQ 181, 16 x 16", "plain VQ 64"]),
    }


def test_courses_are_means_over_seeds_and_parts_those_of_the_first(tmp_path: Path) -> None:
    course = [{"step": 10, "loss": 3.0, "a": 1.0}, {"step": 20, "loss": None, "a": 0.5}]
    add_results(tmp_path, "plain VQ 64", [1.0, 1.0], course=course)
    add_results(tmp_path, "plain VQ 64", [1.0], course=[{"step": 10, "loss": 5.0, "a": 0.0}])
    drawn = (OverSteps("loss", "loss"), PartsOverSteps("plain VQ 64", "parts", {"a": "A"}))
    table = dataclasses.replace(TABLE, drawn=drawn)
    figures = figures_of(table, "laptop", tmp_path)
    assert list(figures) == [
        "depthwise-likelihood-loss-over-steps.svg",
        "depthwise-likelihood-parts-over-steps.svg",
    ]
    losses, parts = figures.values()
    assert isinstance(losses, Lines)
    assert isinstance(parts, Lines)
    # Seed 0 has 5, seed 1 has 3.
    assert [(one.name, one.x, one.y) for one in losses.series] == [("plain VQ 64", [10], [4.0])]
    assert [(one.name, one.x, one.y) for one in parts.series] == [("A", [10], [0.0])]
    names = drawings([table], "laptop", tmp_path)["depthwise-likelihood-loss-over-steps.svg"]
    assert ">plain VQ 64</text>" in names


def test_the_html_page_has_a_chapter_a_paper_and_the_same_verdicts(tmp_path: Path) -> None:
    results = tmp_path / "results"
    add_results(results, "depthwise 5 x 64", [5.0, 5.2])
    add_results(results, "repeated 5 x 64", [5.4, 5.3])
    report = report_of([TABLE, table_named("dpq-rank")], "laptop", results)
    assert list(report.chapters) == [
        "Depthwise quantization",
        "Differentiable product quantization",
    ]
    measured, other = report.findings
    # Of what is drawn, one figure has no numbers here.
    assert [figure.kind for figure in measured.figures] == ["spreads", "listing", "listing"]
    assert [figure.kind for figure in other.figures] == ["listing"]
    assert "smalti reproduce dpq-rank" in other.caption
    text = report.html()
    assert "5.1 (0.14)" in text
    assert "not measured yet" in text


@pytest.mark.parametrize("name", ["page.html", "page.md"])
def test_the_command_writes_a_page_and_not_over_another_file(tmp_path: Path, name: str) -> None:
    page = tmp_path / name
    asked = ["reproduce", "--results", str(tmp_path), "--page", str(page)]
    assert CliRunner().invoke(app, asked).exit_code == 0
    assert "What the papers say" in page.read_text()
    assert CliRunner().invoke(app, asked).exit_code == 0
    page.write_text("mine")
    answer = CliRunner().invoke(app, asked)
    assert isinstance(answer.exception, ArtifactError)
    assert page.read_text() == "mine"


def test_a_page_is_markdown_or_html_and_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "figures").touch()
    os.mkfifo(tmp_path / "pipe.md")
    for name, why in [
        ("page.txt", "a page ends in"),
        ("page.md", "figures is a file"),
        ("pipe.md", "can't write the file"),
    ]:
        asked = ["reproduce", "--results", str(tmp_path), "--page", str(tmp_path / name)]
        answer = CliRunner().invoke(app, asked)
        assert isinstance(answer.exception, SmaltiError)
        assert why in str(answer.exception)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figures", "pipe.md"]


def test_a_table_without_results_says_what_runs_it(tmp_path: Path) -> None:
    text = page([TABLE], "laptop", tmp_path)
    assert "smalti reproduce depthwise-likelihood --scale laptop" in text
    assert "**not measured yet**" in text
    assert drawings([TABLE], "laptop", tmp_path) == {}


def test_results_of_the_tiny_scale_say_that_they_settle_no_claim(tmp_path: Path) -> None:
    said = "settle no claim"
    for scale, tells in [("tiny", True), ("laptop", False)]:
        asked = ["reproduce", "dpq-rank", "--show", "--scale", scale, "--results", str(tmp_path)]
        assert (said in CliRunner().invoke(app, asked).output) == tells
        for suffix in [".html", ".md"]:
            written = tmp_path / f"{scale}{suffix}"
            asked = ["reproduce", "--page", str(written), "--scale", scale]
            assert CliRunner().invoke(app, [*asked, "--results", str(tmp_path)]).exit_code == 0
            assert (said in written.read_text()) == tells


@pytest.mark.parametrize(
    ("teachers", "says"),
    [
        ({"depthwise 5 x 64": "aa", "repeated 5 x 64": "aa"}, None),
        ({"depthwise 5 x 64": "ab", "repeated 5 x 64": "ab"}, "arms of one seed had the same"),
        ({"depthwise 5 x 64": "aa", "repeated 5 x 64": "ab"}, "with seed 1 arms are compared"),
    ],
)
def test_a_page_says_where_models_had_different_teachers(
    tmp_path: Path, teachers: dict[str, str], says: str | None
) -> None:
    for arm, letters in teachers.items():
        own = TABLE.arm(arm)
        add_results(tmp_path, arm, [5.0, 5.2])
        for result, weights in zip(
            read_results(tmp_path, TABLE, "laptop")[arm], letters, strict=True
        ):
            taught = {"teacher": {"weights": weights, "config": {}}}
            write_result(tmp_path, TABLE, own, dataclasses.replace(result, details=taught))
    text = page([TABLE], "laptop", tmp_path)
    assert ("2 trainings of a teacher" in text) == (says is not None)
    assert says is None or says in text


def test_only_a_metric_of_the_table_can_be_drawn() -> None:
    with pytest.raises(ConfigError, match="no metric"):
        declare(dataclasses.replace(TABLE, name="other", drawn=(ByArm("beauty"),)))
