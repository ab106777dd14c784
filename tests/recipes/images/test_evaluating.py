"""What evaluation says, against direct computations on the same images."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import mutual_info_score

from smalti.data.images import Images, read_images
from smalti.errors import ConfigError, DataError, ShapeError
from smalti.recipes.images import (
    Evaluation,
    Run,
    bits_of_levels,
    evaluate_run,
    level_numbers,
    load_run,
    read_fitting_images,
    read_unseen_images,
    reconstruct,
    sample,
)
from smalti.recipes.images.code_statistics import code_statistics


@pytest.fixture(scope="module")
def run(trained: Path) -> Run:
    return load_run(trained)


@pytest.fixture(scope="module")
def images(run: Run) -> Images:
    found, part = read_unseen_images(run, "digits")
    assert part == "held out"
    return found


@pytest.fixture(scope="module")
def found(run: Run, images: Images) -> Evaluation:
    return evaluate_run(run, images)


def test_the_images_held_out_are_those_that_training_held_out(images: Images) -> None:
    assert len(images) == round(0.1 * 1797)
    assert read_images("digits").fingerprint() != images.fingerprint()


def test_bits_per_dim_are_distortion_plus_rate(run: Run, images: Images, found: Evaluation) -> None:
    codes = run.autoencoder.encode(images.pixels)
    nats = run.autoencoder.likelihood.nats(run.autoencoder.decode(codes), images.pixels)
    distortion = float(nats.double().mean()) / (64 * math.log(2))
    for name, bits in found.bits_per_dim.items():
        rate = float(run.priors[name].nats(codes).mean()) / (64 * math.log(2))
        assert bits.distortion == pytest.approx(distortion, rel=1e-5)
        assert bits.rate == pytest.approx(rate, rel=1e-6)
        assert bits.total == pytest.approx(distortion + rate, rel=1e-5)
    # By hand: 2 x 2 and 4 x 4 places with two codes of 3 bits each, over 64 subpixels.
    assert found.bits_per_dim["uniform"].rate == pytest.approx((4 + 16) * 2 * 3 / 64)


def test_the_squared_error_is_that_of_the_reconstructions(
    run: Run, images: Images, found: Evaluation
) -> None:
    again = reconstruct(run, images.pixels)
    error = (again.numpy().astype(float) - images.pixels.numpy()) / 31
    assert found.quality.mse_0_to_1 == pytest.approx(np.mean(error**2))
    assert found.quality.psnr_db == pytest.approx(-10 * np.log10(np.mean(error**2)))
    top = reconstruct(run, images.pixels, level_numbers(run, "top"))
    error = (top.numpy().astype(float) - images.pixels.numpy()) / 31
    assert found.alone["top"].mse_0_to_1 == pytest.approx(np.mean(error**2))
    assert set(found.alone) == {"top", "bottom"}


def test_codes_are_counted_over_the_whole_set(run: Run, images: Images, found: Evaluation) -> None:
    for level, codes in zip(("top", "bottom"), run.autoencoder.encode(images.pixels), strict=True):
        flat = codes.view(-1, 2).numpy()
        figures = found.levels[level]
        for book in range(2):
            shares = np.unique(flat[:, book], return_counts=True)[1] / len(flat)
            assert figures["codebooks"][book]["in_use"] == len(shares)
            entropy = -(shares * np.log2(shares)).sum()
            assert figures["codebooks"][book]["entropy_bits"] == pytest.approx(entropy, abs=1e-12)
        shared = figures["mutual_information_bits"]
        expected = mutual_info_score(flat[:, 0], flat[:, 1]) / math.log(2)
        assert shared["plug_in"] == pytest.approx(expected, abs=1e-12)
        assert shared["corrected"] == pytest.approx(shared["plug_in"] - shared["shuffled"])


def test_codes_that_share_a_codebook_are_counted_together() -> None:
    # By hand: two codes a place, one codebook of four; the first use 0 and 1, the second 1 and 2.
    codes = torch.tensor([[[[0, 1], [1, 2]]]])
    (book,) = code_statistics(codes, [4, 4], stored_sizes=[4])["codebooks"]
    assert (book["in_use"], book["entropy_bits"]) == (3, 1.5)
    apart = code_statistics(codes, [4, 4])["codebooks"]
    assert [book["in_use"] for book in apart] == [2, 2]


def test_a_model_without_probabilities_has_a_rate_and_no_bits_of_distortion(
    tmp_path: Path, small_config: dict[str, Any], images: Images
) -> None:
    from smalti.recipes.images import AutoencoderConfig, train_run
    from smalti.training import as_settings

    model = {"autoencoder": "convolutional", "width": 8, "hidden": 8, "dim": 4, "depth": 1}
    model |= {"quantizer": {"quantizer": "vector", "codebook_size": 8}}
    content = {**small_config, "model": model, "prior": None}
    train_run(as_settings(AutoencoderConfig, content), tmp_path / "run")
    bits = evaluate_run(load_run(tmp_path / "run"), images).bits_per_dim
    assert list(bits) == ["uniform", "unigram"]
    assert (bits["uniform"].distortion, bits["uniform"].total) == (None, None)
    assert bits["uniform"].rate == pytest.approx(4 * 3 / 64)


def test_levels_are_named_from_the_top_down(run: Run) -> None:
    assert level_numbers(run, None) == (0, 1)
    assert level_numbers(run, "bottom") == (1,)
    assert level_numbers(run, "1,0") == (0, 1)
    for bad in ("2", "middle", ""):
        with pytest.raises(ConfigError, match="levels 0 to 1"):
            level_numbers(run, bad)
    assert bits_of_levels(run, (0,), 8, 8) == 4 * 6
    assert bits_of_levels(run, (0, 1), 8, 8) == run.autoencoder.bits_per_image(8, 8)


def test_samples_are_images_and_the_same_for_the_same_seed(run: Run) -> None:
    for prior in (None, "uniform", "unigram"):
        drawn, again = (
            sample(run, 70, prior=prior, generator=torch.Generator().manual_seed(3))
            for _ in range(2)
        )
        assert drawn.shape == (70, 1, 8, 8)
        assert int(drawn.max()) < 32
        assert torch.equal(drawn, again)
    with pytest.raises(ConfigError, match="it has: uniform, unigram, autoregressive"):
        sample(run, 1, prior="best")


def test_images_of_another_kind_are_refused(run: Run, tmp_path: Path) -> None:
    from PIL import Image

    Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / "grey.png")
    with pytest.raises(DataError, match="1 channels of 5 bits"):
        read_fitting_images(run, str(tmp_path / "grey.png"))
    big = Images(torch.zeros(1, 1, 16, 16, dtype=torch.uint8), 5)
    with pytest.raises(ShapeError, match="expected images of 8 x 8"):
        evaluate_run(run, big)


@pytest.mark.slow
def test_a_better_prior_needs_fewer_bits(tmp_path: Path) -> None:
    from smalti.recipes.images import AutoencoderConfig, train_run
    from smalti.training import read_settings

    config = read_settings(AutoencoderConfig, Path(__file__).parents[3] / "configs" / "digits.yaml")
    train_run(config, tmp_path / "run")
    run = load_run(tmp_path / "run")
    found = evaluate_run(run, read_unseen_images(run, "digits")[0]).bits_per_dim
    assert found["autoregressive"].rate < found["unigram"].rate < found["uniform"].rate
    assert found["uniform"].rate == pytest.approx(run.autoencoder.bits_per_image(8, 8) / 64)
