"""Small models learn real images, with every likelihood."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from smalti.autoencoders import Autoencoder, Convolutional, Hierarchical
from smalti.autoencoders.likelihoods import likelihoods
from smalti.quantizers import follow


def loss_of(model: Autoencoder, pixels: Tensor) -> Tensor:
    return model.likelihood.loss(model(pixels).parameters, pixels)


def held_out_losses(
    model: Autoencoder, train: Tensor, test: Tensor, steps: int, rate: float = 2e-3
) -> tuple[float, float]:
    """The likelihood's loss of images not trained on, before and after."""
    optimizer = torch.optim.Adam(model.parameters(), rate)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        before = float(loss_of(model.eval(), test))
    model.train()
    for _ in range(steps):
        pixels = train[torch.randint(len(train), (32,), generator=generator)]
        optimizer.zero_grad()
        out = model(pixels)
        (model.likelihood.loss(out.parameters, pixels) + out.loss).backward()
        optimizer.step()
    with torch.no_grad():
        return before, float(loss_of(model.eval(), test))


def two_levels(channels: int, bits: int, likelihood: str, width: int) -> Hierarchical:
    torch.manual_seed(0)
    level = {"quantizer": "depthwise", "num_codebooks": 2, "codebook_size": 32}
    sizes = {"dim": 16, "width": width, "hidden": width // 2, "depth": 1, "stages": 1}
    return Hierarchical(channels, bits, likelihood=likelihood, quantizers=[level, level], **sizes)


@pytest.mark.parametrize("likelihood", likelihoods.names())
def test_a_hundred_steps_on_digits_lower_the_loss_of_others(likelihood: str) -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    digits = torch.from_numpy(datasets.load_digits().images).to(torch.uint8)[:, None].clamp(max=15)
    model = two_levels(1, 4, likelihood, width=16)
    before, after = held_out_losses(model, digits[:1500], digits[1500:], steps=100)
    assert after < 0.75 * before
    if model.likelihood.exact:
        # Better than the best guess that does not look at the image: the frequency of values.
        counts = torch.bincount(digits[:1500].flatten().long(), minlength=16).double() + 1
        guess = -(counts / counts.sum()).log()[digits[1500:].flatten().long()].mean()
        assert after < float(guess) < math.log(16)
    else:
        scaled = model.likelihood.scaled(digits[1500:])
        assert after < float(scaled.var())


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("likelihood", likelihoods.names())
def test_some_steps_on_photographs_lower_the_loss_of_others(
    likelihood: str, public: Callable[[str], Path]
) -> None:
    with np.load(public("images/cifar10_10k2k.npz")) as archive:
        train, test = (
            torch.from_numpy(archive[name][:count, 8:24, 8:24]).permute(0, 3, 1, 2).contiguous()
            for name, count in (("train_x", 2000), ("test_x", 64))
        )
    model = two_levels(3, 8, likelihood, width=24)
    before, after = held_out_losses(model, train, test, steps=60)
    assert after < 0.95 * before
    if model.likelihood.exact:
        assert after < math.log(256)


@pytest.mark.parametrize("variant", ["product", "depthwise", "repeated", "residual"])
def test_with_one_codebook_all_ways_to_use_several_learn_what_plain_vq_learns(variant: str) -> None:
    def losses(quantizer: dict[str, object]) -> list[float]:
        torch.manual_seed(0)
        model = Convolutional(
            channels=1,
            quantizer={"codebook_size": 16, **quantizer},
            **{"dim": 8, "width": 16, "hidden": 8, "depth": 1, "halvings": 1},
        )
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        follow(model, optimizer)
        found = []
        # Past the first revival of dead codewords.
        for _ in range(110):
            pixels = torch.randint(256, (4, 1, 8, 8), dtype=torch.uint8)
            out = model(pixels)
            loss = model.likelihood.loss(out.parameters, pixels) + out.loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(float(loss.detach()))
        return found

    assert losses({"quantizer": variant, "num_codebooks": 1}) == losses({"quantizer": "vector"})
