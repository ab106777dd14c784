"""Predictions are those of an evaluation, and a file keeps close to them."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import Tensor

from smalti.codec import CodecModel, encode_images
from smalti.codec.container import read_file
from smalti.data.images import Images
from smalti.recipes.images import AutoencoderConfig, Run, evaluate_run
from smalti.training import as_settings


def test_predicted_bits_are_those_of_an_evaluation(
    model: CodecModel, pixels: Tensor, tmp_path: Path
) -> None:
    config = as_settings(
        AutoencoderConfig,
        {
            **{"kind": "autoencoder", "data": {"source": "nowhere"}, "training": {"steps": 1}},
            "model": model.autoencoder.spec(),
        },
    )
    run = Run(config, model.autoencoder, {"own": model.prior}, (8, 8), "none")
    rated = evaluate_run(run, Images(pixels)).bits_per_dim["own"]
    assert rated.distortion is not None
    encoded = encode_images(model, pixels, tmp_path / "a.smt", lossless=True)
    assert encoded.predicted_code_bits == pytest.approx(rated.rate * pixels.numel(), rel=1e-6)
    assert encoded.predicted_pixel_bits == pytest.approx(
        rated.distortion * pixels.numel(), rel=1e-6
    )
    assert encoded.excess == pytest.approx(
        8 * (tmp_path / "a.smt").stat().st_size / (rated.rate + rated.distortion) / pixels.numel()
        - 1
    )
    lossy = encode_images(model, pixels, tmp_path / "b.smt")
    assert lossy.predicted_bits == encoded.predicted_code_bits
    assert lossy.predicted_pixel_bits == 0


def test_payloads_are_as_long_as_predicted(
    model: CodecModel, pixels: Tensor, tmp_path: Path
) -> None:
    encoded = encode_images(model, pixels, tmp_path / "a.smt", lossless=True)
    payload = sum(len(block.stream.payload) for block in read_file(tmp_path / "a.smt")[1])
    assert 8 * payload == pytest.approx(encoded.predicted_bits, rel=0.01)
