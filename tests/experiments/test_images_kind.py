"""What the image kind takes from a run beside its evaluation."""

from __future__ import annotations

from smalti.autoencoders import Convolutional
from smalti.experiments.kinds.images import _numbers, _on_the_way


def test_figures_on_the_way_are_those_of_the_first_a_quarter_and_the_last() -> None:
    course = [{"step": step, "loss": 10.0 - step, "share/0": step / 10} for step in (1, 2, 4, 8)]
    found = _on_the_way(course, steps=8)
    assert (found["first_loss"], found["quarter_loss"], found["last_loss"]) == (9.0, 8.0, 2.0)
    assert found["last_share_0"] == 0.8


def test_one_evaluation_is_no_course() -> None:
    assert _on_the_way([{"step": 4, "loss": 1.0}], steps=4) == {}


def test_codebooks_are_counted_apart_from_the_network_however_they_learn() -> None:
    found = {}
    for learning in ("ema", "gradient"):
        quantizer = {"quantizer": "vector", "codebook_size": 8, "learning": learning}
        model = Convolutional(channels=1, width=8, hidden=4, depth=1, dim=4, quantizer=quantizer)
        found[learning] = _numbers(model)
    # Eight codewords of four numbers.
    assert found["ema"]["codebook_numbers"] == found["gradient"]["codebook_numbers"] == 32
    assert found["ema"]["parameters"] == found["gradient"]["parameters"]
