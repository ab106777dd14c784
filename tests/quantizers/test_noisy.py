"""What is particular to Gumbel and SemanticHash: noise that fades, bits that stay."""

from __future__ import annotations

import pytest
import torch

from smalti.errors import ConfigError
from smalti.quantizers import Gumbel, SemanticHash
from smalti.quantizers.annealing import Annealing
from smalti.quantizers.semantic_hash import saturating_sigmoid, truncated_normal_like


def test_near_codewords_are_drawn_more_often_than_far_ones() -> None:
    torch.manual_seed(0)
    layer = Gumbel(1, 2, start="random", temperature=1.0)
    layer.codebook.data.copy_(torch.tensor([[0.0], [1.0]]))
    x = torch.full((20_000, 1), 0.2)
    share = (layer(x).codes == 0).float().mean()
    # Scores are -0.04 and -0.64; the Gumbel draw follows their softmax.
    expected = torch.tensor([-0.04, -0.64]).softmax(0)[0]
    assert share == pytest.approx(float(expected), abs=0.015)


def test_the_temperature_falls_exponentially_and_stays() -> None:
    layer = Gumbel(4, 8, temperature=2.0, final_temperature=0.5, anneal_steps=10)
    seen = [float(layer(torch.randn(20, 4)).metrics["temperature"]) for _ in range(13)]
    expected = [2.0 * 0.25 ** (min(step, 10) / 10) for step in range(13)]
    assert seen == pytest.approx(expected, rel=1e-5)


def test_the_paper_schedule_counts_down_and_evaluates_at_one() -> None:
    annealing = Annealing(2.0, 0.5, 5, "paper")
    seen = []
    for _ in range(5):
        seen.append(float(annealing.value()))
        annealing.advance()
    assert seen == [6, 5, 4, 3, 2]
    assert float(annealing.eval().value()) == 1


@pytest.mark.parametrize("hard", [True, False])
def test_codewords_and_scores_learn_through_the_vectors(hard: bool) -> None:
    torch.manual_seed(0)
    layer = Gumbel(4, 8, hard=hard, scores="linear", start="random")
    layer(torch.randn(50, 4)).vectors.square().sum().backward()
    for parameter in layer.parameters():
        assert parameter.grad is not None
        assert parameter.grad.abs().sum() > 0


def test_a_hard_draw_passes_on_one_codeword() -> None:
    layer = Gumbel(4, 8, start="random")
    out = layer(torch.randn(50, 4))
    assert torch.equal(out.vectors, layer.codebook[out.codes.squeeze(-1)])


def test_the_divergence_from_uniform_is_zero_for_equal_scores() -> None:
    layer = Gumbel(4, 8, scores="linear", kl_weight=1.0, start="random")
    layer.weight.data.zero_()
    assert layer(torch.randn(50, 4)).loss.item() == pytest.approx(0, abs=1e-5)


def test_the_saturating_sigmoid_reaches_its_ends() -> None:
    # sigmoid(2.4) = 0.9168; 1.2 times that less 0.1 is past 1.
    values = saturating_sigmoid(torch.tensor([-2.41, 0.0, 2.41]))
    assert values.tolist() == pytest.approx([0, 0.5, 1])


def test_codes_are_little_endian_bits() -> None:
    layer = SemanticHash(3, 3).eval()
    layer.to_bits.weight.data.copy_(torch.eye(3))
    layer.to_bits.bias.data.zero_()
    x = torch.tensor([[1.0, -1.0, -1.0], [-1.0, 1.0, 1.0]])
    assert layer.encode(x).squeeze(-1).tolist() == [1, 6]


def test_62_bits_survive_the_way_through_one_integer() -> None:
    layer = SemanticHash(62, 62).eval()
    layer.to_bits.weight.data.copy_(torch.eye(62))
    layer.to_bits.bias.data.zero_()
    x = torch.randn(100, 62)
    assert torch.equal(layer.decode(layer.encode(x)), layer(x).vectors)
    assert layer.encode(torch.ones(1, 62)).item() == 2**62 - 1


@pytest.mark.parametrize("bits", [0, 63, 1.5])
def test_an_impossible_number_of_bits_is_refused(bits: int) -> None:
    with pytest.raises(ConfigError):
        SemanticHash(4, bits)


def test_a_small_autoencoder_learns_through_noisy_bits() -> None:
    torch.manual_seed(0)
    layer = SemanticHash(4, 8, warmup_steps=100)
    decoder = torch.nn.Linear(4, 4)
    optimizer = torch.optim.Adam([*layer.parameters(), *decoder.parameters()], lr=1e-2)
    x = torch.randn(256, 4)

    def error() -> torch.Tensor:
        return (decoder(layer(x).vectors) - x).square().mean()

    first = error().item()
    for _ in range(150):
        optimizer.zero_grad()
        error().backward()
        optimizer.step()
    layer.eval()
    assert error().item() < 0.5 * first


def test_the_noise_of_the_bits_is_a_truncated_normal() -> None:
    torch.manual_seed(0)
    noise = truncated_normal_like(torch.empty(200_000))
    assert noise.abs().max() <= 2
    # The standard deviation of a normal cut at two deviations.
    assert noise.std().item() == pytest.approx(0.8796, abs=0.005)
