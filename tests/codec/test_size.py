"""Files of real images are as small as the trained model promises."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from smalti.autoencoders import Autoencoder, build_autoencoder
from smalti.codec import CodecModel, decode_images, encode_images
from smalti.data.images import Images, read_images
from smalti.priors import LevelsPrior


def trained_autoencoder(pixels: Tensor, bits: int, steps: int, batch: int) -> Autoencoder:
    """A small autoencoder after some steps of plain training."""
    torch.manual_seed(0)
    autoencoder = build_autoencoder(
        "convolutional",
        channels=1,
        bits=bits,
        likelihood={"likelihood": "logistic_mixture", "components": 4},
        quantizer={"quantizer": "depthwise", "num_codebooks": 2, "codebook_size": 16},
        **{"dim": 16, "width": 32, "hidden": 16, "depth": 1, "halvings": 2},
    )
    optimizer = torch.optim.Adam(autoencoder.parameters(), lr=3e-3)
    for some in parts(pixels, steps, batch):
        out = autoencoder(some)
        optimizer.zero_grad()
        (autoencoder.likelihood.loss(out.parameters, some) + out.loss).backward()
        optimizer.step()
    return autoencoder.eval()


def trained_prior(autoencoder: Autoencoder, pixels: Tensor) -> LevelsPrior:
    """A small prior of the codes of images."""
    (codes,) = autoencoder.encode(pixels)
    levels = zip(autoencoder.grids(8, 8), autoencoder.code_sizes, strict=True)
    prior = LevelsPrior.over(list(levels), "autoregressive", dim=32, depth=1, heads=2)
    optimizer = torch.optim.Adam(prior.parameters(), lr=3e-3)
    for some in parts(codes, steps=200, batch=64):
        optimizer.zero_grad()
        prior.loss([some]).backward()
        optimizer.step()
    return prior


def parts(items: Tensor, steps: int, batch: int) -> Iterator[Tensor]:
    """Batches, round after round."""
    for step in range(steps):
        yield items[torch.arange(step * batch, (step + 1) * batch) % len(items)]


def mosaics(digits: Tensor, count: int) -> Tensor:
    """Images of 32 x 32, sixteen digits each."""
    chosen = torch.randint(len(digits), (count, 4, 4), generator=torch.Generator().manual_seed(0))
    return digits[chosen][:, :, :, 0].permute(0, 1, 3, 2, 4).reshape(count, 1, 32, 32)


def promised_bytes(model: CodecModel, pixels: Tensor) -> tuple[float, float]:
    """Of codes and of pixels, by whole grids and images at once and in float32."""
    with torch.no_grad():
        codes = model.autoencoder.encode(pixels)
        parameters = model.autoencoder.decode(codes)
        nats = model.prior.nats(codes), model.autoencoder.likelihood.nats(parameters, pixels)
    of_codes, of_pixels = (float(part.sum()) / math.log(2) / 8 for part in nats)
    return of_codes, of_pixels


@pytest.fixture(scope="module")
def digits() -> Images:
    """Real images of 8 x 8."""
    pytest.importorskip("sklearn")
    return read_images("digits")


@pytest.mark.slow
def test_two_hundred_digits_take_what_the_model_promises(digits: Images, tmp_path: Path) -> None:
    known, unseen = digits.pixels[:-200], digits.pixels[-200:]
    autoencoder = trained_autoencoder(known, digits.bits, steps=250, batch=64)
    model = CodecModel(autoencoder, trained_prior(autoencoder, known))
    encoded = encode_images(model, unseen, tmp_path / "digits.smt", lossless=True)
    assert torch.equal(decode_images(tmp_path / "digits.smt", model), unseen)
    of_codes, of_pixels = promised_bytes(model, unseen)
    payload = encoded.code_bytes + encoded.pixel_bytes
    assert payload == pytest.approx(of_codes + of_pixels, rel=0.01)
    # A coder ends at a whole word.
    assert encoded.code_bytes == pytest.approx(of_codes, abs=8)
    # Magic, header, two blocks' heads and the end.
    assert encoded.bytes - payload < 400
    # It learned something: codes below their 4 bits, pixels below those of the source.
    assert encoded.code_bytes < 200 * 8 * 4 / 8
    assert encoded.pixel_bytes < unseen.numel() * digits.bits / 8


@pytest.mark.slow
def test_a_whole_file_of_two_hundred_small_images_is_within_a_hundredth(
    digits: Images, tmp_path: Path
) -> None:
    # Single digits are so small that a file's head counts.
    pixels = mosaics(digits.pixels[-200:], 200)
    known = mosaics(digits.pixels[:-200], 500)
    autoencoder = trained_autoencoder(known, digits.bits, steps=80, batch=16)
    levels = zip(autoencoder.grids(32, 32), autoencoder.code_sizes, strict=True)
    model = CodecModel(autoencoder, LevelsPrior.over(list(levels), "uniform"))
    encoded = encode_images(model, pixels, tmp_path / "many.smt", lossless=True)
    assert encoded.bytes == pytest.approx(sum(promised_bytes(model, pixels)), rel=0.01)
    assert torch.equal(decode_images(tmp_path / "many.smt", model), pixels)
