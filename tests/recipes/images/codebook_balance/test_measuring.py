"""The figures of an arm, against direct computations in NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from smalti.autoencoders import build_autoencoder, gradient_gap
from smalti.data.images import Images
from smalti.errors import ConfigError
from smalti.recipes.images import AutoencoderConfig, Run
from smalti.recipes.images.codebook_balance import measure

POOL = [[4, 4], [8, 2], [16, 1]]
TRAINING = {"steps": 1}


def images(count: int, seed: int) -> Images:
    drawn = torch.Generator().manual_seed(seed)
    return Images(torch.randint(0, 256, (count, 1, 8, 8), dtype=torch.uint8, generator=drawn))


def run_with(**quantizer: Any) -> Run:
    """A model whose codebooks have seen one batch, so that codes differ."""
    torch.manual_seed(0)
    model = {"autoencoder": "convolutional", "width": 8, "hidden": 4, "depth": 1, "halvings": 1}
    spec = {**model, "quantizer": quantizer, "dim": 4}
    autoencoder = build_autoencoder({"channels": 1, "bits": 8, **spec})
    autoencoder(images(64, seed=1).pixels)
    config = AutoencoderConfig(
        kind="autoencoder", data={"source": "digits"}, model=spec, training=TRAINING
    )
    return Run(config, autoencoder.eval(), {}, (8, 8), "")


def entropy_bits(counts: np.ndarray[Any, Any]) -> float:
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


def test_one_codebook_costs_the_logarithm_of_its_size() -> None:
    run, unseen = run_with(quantizer="vector", codebook_size=16), images(40, seed=2)
    found = measure(run, unseen, images(30, seed=3))
    assert found["rate_bits"] == 4
    # 4 x 4 places for 8 x 8 pixels of one channel.
    assert found["rate_bits_per_dim"] == pytest.approx(4 * 16 / 64)
    codes = run.autoencoder.encode(unseen.pixels)[0]
    assert found["codes_in_use"] == len(np.unique(codes.numpy()))
    assert found["codewords"] == 16
    assert found["shares"] is None
    assert found["selection_bits"] is None


def test_the_error_is_that_of_rounded_pixels_over_all_images() -> None:
    run, unseen = run_with(quantizer="vector", codebook_size=16), images(200, seed=2)
    found = measure(run, unseen, images(30, seed=3))
    again = run.autoencoder.likelihood.image(run.autoencoder(unseen.pixels).parameters)
    error = (unseen.pixels.numpy() / 255.0 - again.numpy() / 255.0) ** 2
    assert found["mse_0_to_1"] == pytest.approx(error.mean())
    assert found["psnr_db"] == pytest.approx(-10 * math.log10(error.mean()))


def test_a_place_of_a_pool_costs_its_choice_and_the_chosen_word() -> None:
    run, unseen = run_with(quantizer="adaptive", pool=POOL), images(100, seed=2)
    found = measure(run, unseen, images(30, seed=3))
    codes = run.autoencoder.encode(unseen.pixels)[0].reshape(-1, 2).numpy()
    counts = np.bincount(codes[:, 0], minlength=3)
    assert (counts > 0).sum() > 1
    words = np.array([2.0, 3.0, 4.0])[codes[:, 0]].mean()
    assert found["selection_bits"] == pytest.approx(entropy_bits(counts))
    assert found["rate_bits"] == pytest.approx(entropy_bits(counts) + words)
    assert found["shares"] == pytest.approx((counts / counts.sum()).tolist())
    assert found["codes_in_use"] == len(np.unique(codes, axis=0))
    assert found["codewords"] == 4 + 8 + 16


def test_coded_bits_are_the_cross_entropy_with_the_counts_of_training() -> None:
    run, unseen, known = run_with(quantizer="adaptive", pool=POOL), images(50, 2), images(60, 3)
    found = measure(run, unseen, known)
    begins = np.array([0, 4, 12])
    tested, trained = (
        begins[codes[:, 0]] + codes[:, 1]
        for codes in (
            run.autoencoder.encode(some.pixels)[0].reshape(-1, 2).numpy()
            for some in (unseen, known)
        )
    )
    counts = np.bincount(trained, minlength=28) + 0.5
    expected = -np.log2(counts / counts.sum())[tested].mean()
    assert found["coded_bits"] == pytest.approx(expected)


def test_a_slab_tells_a_word_of_every_codebook_at_every_place() -> None:
    run = run_with(quantizer="adaptive", pool=POOL, selection="slab")
    found = measure(run, images(50, seed=2), images(30, seed=3))
    assert found["rate_bits"] == pytest.approx(found["selection_bits"] + 2 + 3 + 4)
    assert found["codewords"] == 28


def test_the_gap_is_a_mean_over_images_whatever_the_blocks() -> None:
    run, unseen = run_with(quantizer="adaptive", pool=POOL), images(200, seed=2)
    found = measure(run, unseen, images(30, seed=3))
    size, relative = gradient_gap(run.autoencoder, unseen.pixels)
    assert size > 0
    assert found["gradient_gap"] == pytest.approx(size, rel=1e-4)
    assert found["relative_gradient_gap"] == pytest.approx(relative, rel=1e-4)


def test_a_model_of_several_grids_is_refused() -> None:
    run = run_with(quantizer="vector", codebook_size=16)
    other = build_autoencoder({"autoencoder": "gaussian", "channels": 1, "bits": 8, "width": 8})
    with pytest.raises(ConfigError, match="one grid"):
        measure(Run(run.config, other.eval(), {}, (8, 8), ""), images(2, seed=2), images(2, seed=3))
