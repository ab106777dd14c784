"""What is particular to SoftEM."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from smalti.errors import ConfigError
from smalti.quantizers import SoftEM, VectorQuantizer
from smalti.quantizers.posterior import sample_codes


def posterior(x: torch.Tensor, codebook: torch.Tensor, temperature: float) -> np.ndarray:
    """softmax(-squared distance / temperature), by numpy in float64."""
    gaps = x.double().numpy()[:, None] - codebook.double().numpy()[None]
    logits = -(gaps**2).sum(-1) / temperature
    weights = np.exp(logits - logits.max(1, keepdims=True))
    return np.asarray(weights / weights.sum(1, keepdims=True))


def test_codes_are_drawn_from_the_posterior() -> None:
    torch.manual_seed(0)
    x, codebook = torch.randn(3, 2), torch.randn(6, 2)
    draws = 40_000
    codes, best, entropy = sample_codes(
        x[None], codebook[None], torch.zeros(1, 6), torch.tensor(1.5), torch.rand(1, 3, draws)
    )
    expected = posterior(x, codebook, 1.5)
    for row in range(3):
        shares = torch.bincount(codes[0, row], minlength=6).double().numpy() / draws
        # Four standard deviations of a binomial share.
        assert np.abs(shares - expected[row]).max() < 4 * math.sqrt(0.25 / draws)
    assert best[0].tolist() == expected.argmax(1).tolist()
    np.testing.assert_allclose(entropy[0], -(expected * np.log(expected)).sum(1), rtol=1e-4)


def test_the_prior_shifts_the_draws() -> None:
    prior = torch.tensor([[0.9, 0.1]]).log()
    codes, _, _ = sample_codes(
        torch.zeros(1, 1, 2),
        torch.tensor([[[1.0, 0.0], [-1.0, 0.0]]]),
        prior,
        torch.tensor(1.0),
        torch.rand(1, 1, 20_000),
    )
    assert (codes == 0).float().mean() == pytest.approx(0.9, abs=0.01)


def test_the_vectors_are_the_mean_of_the_sampled_codewords() -> None:
    layer = SoftEM(4, 32, samples=7, temperature=3.0)
    layer.start_from(torch.randn(200, 4))
    codebook = layer.codebook.clone()
    out = layer.sample(torch.randn(5, 9, 4))
    assert out.samples.shape == (5, 9, 7)
    torch.testing.assert_close(out.vectors, codebook[out.samples].mean(dim=-2))


def test_one_step_moves_codewords_to_the_shared_mean_of_their_samples() -> None:
    torch.manual_seed(0)
    layer = SoftEM(3, 8, samples=5, decay=0.0, start="random", dead="keep")
    x = torch.randn(60, 3)
    before = layer.codebook.clone()
    samples = layer.sample(x).samples.numpy()
    shares = np.zeros((60, 8))
    for sample in range(5):
        shares[np.arange(60), samples[:, sample]] += 1 / 5
    for code in range(8):
        weight = shares[:, code].sum()
        expected = (shares[:, code] @ x.numpy()) / weight if weight else before[code].numpy()
        np.testing.assert_allclose(layer.codebook[code], expected, atol=1e-5)


def test_a_cold_posterior_equals_hard_assignment_and_says_so() -> None:
    torch.manual_seed(0)
    soft = SoftEM(8, 16, temperature=1e-4, start="random", dead="keep")
    hard = VectorQuantizer(8, 16, start="random", dead="keep")
    hard.codebook.copy_(soft.codebook)
    x = torch.randn(50, 8)
    out = soft(x)
    torch.testing.assert_close(out.vectors, hard(x).vectors)
    torch.testing.assert_close(soft.codebook, hard.codebook)
    assert out.metrics["posterior_entropy"] < 0.01


def test_a_scaled_temperature_keeps_wide_posteriors_soft() -> None:
    torch.manual_seed(0)
    x = 5 * torch.randn(400, 256)
    entropies = {}
    for temperature in (1.0, "scaled"):
        layer = SoftEM(256, 64, temperature=temperature, start="random", dead="keep")
        for _ in range(5):
            out = layer(x)
        entropies[temperature] = float(out.metrics["posterior_entropy"])
    assert entropies["scaled"] > 10 * entropies[1.0]


def test_the_learned_prior_prefers_codes_that_were_used() -> None:
    torch.manual_seed(0)
    layer = SoftEM(2, 2, prior="learned", start="random", dead="keep", decay=0.5)
    layer.codebook.copy_(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
    for _ in range(10):
        layer(torch.tensor([[0.9, 0.0]]).repeat(50, 1))
    layer.codebook.copy_(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
    # Nearer to code 1, but code 0 was chosen nearly always.
    assert layer.eval().encode(torch.tensor([[-0.05, 0.0]])).item() == 0


def test_evaluation_is_the_most_probable_code() -> None:
    layer = SoftEM(4, 32)
    layer(torch.randn(100, 4))
    layer.eval()
    x = torch.randn(50, 4)
    assert torch.equal(layer(x).codes[:, 0], torch.cdist(x, layer.codebook).argmin(1))


@pytest.mark.parametrize(
    "bad",
    [{"samples": 0}, {"temperature": 0}, {"temperature": "hot"}, {"prior": "x"},
     {"learning": "gradient"}],
)  # fmt: skip
def test_impossible_settings_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        SoftEM(**{"dim": 4, "codebook_size": 8, **bad})
