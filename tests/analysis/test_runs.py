"""Findings about what was tried and trained."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from smalti.analysis import codebook_balance, rate_distortion, training_curves
from smalti.analysis.png import png
from smalti.errors import DataError, ShapeError


def trial(bytes_: int, drop: float, method: str = "product") -> dict[str, object]:
    return {
        "table": f"{method} of {bytes_}",
        "percent": bytes_ / 100,
        "bytes": bytes_,
        "cosine": 1 - drop / 100,
        "drop_percent": drop,
        "spec": {"compressor": method},
    }


def test_the_frontier_holds_what_no_other_of_its_size_beats() -> None:
    trials = [trial(300, 1.0), trial(100, 5.0), trial(200, 6.0, "integer"), trial(400, 0.0)]
    found = rate_distortion(trials)
    assert [entry["bytes"] for entry in found.numbers["frontier"]] == [100, 300, 400]
    scatter = found.figures[0].as_dict()
    assert {series["name"] for series in scatter["series"]} == {"product", "integer"}
    assert [row[0] for row in found.figures[1].as_dict()["rows"]] == ["*", "", "*", "*"]


def test_a_foreign_list_is_refused() -> None:
    with pytest.raises(DataError, match="lacks percent"):
        rate_distortion([{"table": "x"}])
    with pytest.raises(DataError, match="at least one table"):
        rate_distortion([])


def test_a_study_is_shown_with_rates_gaps_and_choices() -> None:
    def arm(name: str, kind: str, error: float, bits: float) -> dict[str, object]:
        shares = {"shares": [0.25, 0.75]} if kind == "adaptive" else {}
        entries = [{"step": n, "relative_gradient_gap": 0.1 * n, **shares} for n in (1, 2)]
        history = {"0": entries}
        mean = {"mse_0_to_1": error, "rate_bits": bits}
        return {"name": name, "kind": kind, "mean": mean, "history": history}

    study = {
        "pairs": [[4, 2], [8, 1]],
        "steps": 2,
        "in_words": ["best fixed pair: 8x1"],
        "arms": [arm("4x2", "fixed", 0.2, 2.0), arm("pool", "adaptive", 0.1, 4.0)],
    }
    found = codebook_balance(study)
    assert found.caption == "Best fixed pair: 8x1."
    scatter, gaps, choices, _ = (figure.as_dict() for figure in found.figures)
    assert [series["x"] for series in scatter["series"]] == [[2.0], [4.0]]
    assert gaps["series"][0]["y"] == [0.1, 0.2]
    assert [series["y"] for series in choices["series"]] == [[0.25, 0.25], [0.75, 0.75]]
    with pytest.raises(DataError, match="lacks arms"):
        codebook_balance({})


def test_curves_are_the_journals_lines_by_sort() -> None:
    journal = [
        {"step": step, "kind": "train", "metrics": {"loss": 8 / step, "share/0": 0.25}}
        for step in (1, 2, 4)
    ]
    evaluated = {"likelihood_loss": 1.5, "relative_gradient_gap": 0.2}
    journal.append({"step": 4, "kind": "evaluate", "metrics": evaluated})
    found = training_curves(journal)
    assert found.numbers["train: loss"]["value"] == [8, 4, 2]
    assert {figure.title for figure in found.figures} == {
        "Losses",
        "Choice of codebooks",
        "Gradient gap, relative to the gradient without codes",
    }
    assert "gradient gap went from 20.0% to 20.0%" in found.caption
    with pytest.raises(DataError, match="a journal with figures"):
        training_curves([])


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_other_readers_open_the_pictures(channels: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, channels)).astype(np.uint8)
    with Image.open(io.BytesIO(png(pixels))) as opened:
        np.testing.assert_array_equal(np.asarray(opened).reshape(5, 7, channels), pixels)
    assert base64.b64encode(png(pixels))[:5] == b"iVBOR"


def test_pictures_of_other_shapes_are_refused() -> None:
    with pytest.raises(ShapeError, match="height, width, 1, 3 or 4"):
        png(np.zeros((2, 2), np.uint8))
