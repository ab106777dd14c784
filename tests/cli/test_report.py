"""``smalti report`` and ``smalti diff``, and the pages at the end of other commands."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Done

pytest.importorskip("transformers")
QUICK = ("--method", "product", "--set", "num_codebooks=6", "--set", "codebook_size=16")


@pytest.fixture
def small(
    command: Callable[..., Done],
    small_model: Callable[[str], Path],
    text_file: Path,
    tmp_path: Path,
) -> Path:
    place = tmp_path / "small"
    done = command("compress", small_model("encoder"), "--text", text_file, *QUICK, "-o", place)
    assert done.status == 0, done
    assert done.out.endswith(f"report: {place / 'report.html'}\n")
    return place


def test_compress_leaves_a_page_and_a_directory_that_is_still_its_own(
    small: Path,
    command: Callable[..., Done],
    small_model: Callable[[str], Path],
    text_file: Path,
) -> None:
    page = (small / "report.html").read_text()
    assert "The embedding table takes" in page
    assert "neighbours stay" in page
    assert command("inspect", small).status == 0
    # Written again, with the page of before in it, and without a new one.
    again = ("compress", small_model("encoder"), "--text", text_file, *QUICK, "-o", small)
    done = command(*again, "--no-report", "--json")
    assert done.status == 0, done
    assert "report" not in json.loads(done.out)
    assert not (small / "report.html").exists()
    # A page of the user's own is something added.
    (small / "report.html").write_text("mine")
    assert command(*again).status == 2


def test_report_compares_with_what_the_model_was_made_from(
    small: Path, command: Callable[..., Done], text_file: Path
) -> None:
    done = command("report", small, "--text", text_file, "--words", "ba,do", "--json")
    assert done.status == 0, done
    found = json.loads(done.out)
    assert found["findings"]["frequency_bands"]["numbers"]["bands"]
    assert found["findings"]["neighbours"]["numbers"]["rows"] == 400
    assert found["bytes"] == Path("report.html").stat().st_size
    figures = json.loads((small / "config.json").read_text())["quantization_config"]["origin"]
    assert found["numbers"][1]["value"] == f"{figures['figures']['output_cosine']:.4f}"


def test_a_damaged_or_foreign_directory_gives_one_line_and_no_page(
    small: Path,
    command: Callable[..., Done],
    small_model: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    mute = tmp_path / "mute"
    shutil.copytree(small, mute)
    (mute / "tokenizer.json").write_text("{}")
    weights = small / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "notes.txt").write_text("hello")
    dense = small_model("encoder")
    for place, word in (
        (small, "damaged"),
        (mute, "can't open the tokenizer"),
        (tmp_path / "foreign", "holds something else"),
        (tmp_path / "absent", "nothing at"),
        (dense, "not a model with a compressed table"),
    ):
        done = command("report", place, "-o", "page.html")
        assert done.status == 2, done
        assert word in done.err
        assert len(done.err.splitlines()) == 1
        assert list(Path().iterdir()) == []


def test_a_file_that_is_no_page_is_not_replaced(small: Path, command: Callable[..., Done]) -> None:
    Path("thesis.html").write_text("years of work")
    done = command("report", small, "-o", "thesis.html")
    assert done.status == 2
    assert "holds something else" in done.err
    assert Path("thesis.html").read_text() == "years of work"


def test_diff_shows_two_models_side_by_side(
    small: Path,
    command: Callable[..., Done],
    small_model: Callable[[str], Path],
    text_file: Path,
    tmp_path: Path,
) -> None:
    other = tmp_path / "other"
    source = small_model("encoder")
    more = ("--seed", "1", "--no-report", "-o", other)
    assert command("compress", source, "--text", text_file, *QUICK, *more).status == 0
    found = json.loads(command("diff", small, other, "--json").out)
    assert found["a"]["total_bytes"] == found["b"]["total_bytes"]
    assert 0 < found["between"]["codes_changed"] <= 1
    assert 0 <= found["between"]["neighbours_lost"] <= 1
    assert found["a"]["output_cosine"] > 0.5
    done = command("diff", small, source)
    assert "times smaller" in done.out
    assert "neighbours lost" in done.out
    assert command("diff", small, tmp_path / "absent").status == 2


@pytest.mark.slow
def test_tune_and_train_leave_pages(
    command: Callable[..., Done], small_model: Callable[[str], Path], text_file: Path, trained: Path
) -> None:
    done = command("tune", "table", small_model("encoder"), "--text", text_file, "--size", "20%")
    assert done.status == 0, done
    assert "report: frontier.html" in done.out
    assert "beaten by none" in Path("frontier.html").read_text()
    assert command("report", "frontier.json", "-o", "again.html").status == 0
    assert Path("again.html").read_text() == Path("frontier.html").read_text()
    shutil.copytree(trained, "run")
    done = command("report", "run", "-o", "run/report.html", "--json")
    assert done.status == 0, done
    assert "reconstructions" in json.loads(done.out)["findings"]
    assert command("inspect", "run").status == 0
