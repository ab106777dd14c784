"""What is particular to each likelihood; the common contract is in tests/contracts."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import logistic
from torch import Tensor
from torch.nn import functional

from smalti.autoencoders.likelihoods import Categorical, LogisticMixture, SquareError
from smalti.errors import ConfigError


def random_pixels(shape: tuple[int, ...], bits: int = 8) -> Tensor:
    return torch.randint(2**bits, shape, generator=torch.Generator().manual_seed(0))


# Squared error


def test_a_squared_error_is_counted_between_minus_1_and_1() -> None:
    likelihood = SquareError(channels=1, bits=8)
    pixels = torch.tensor([[[[0, 255]]]], dtype=torch.uint8)
    # By hand: black is -1 and white is 1, so the errors are 0.5 and 1.
    loss = likelihood.loss(torch.tensor([[[[-0.5, 0.0]]]]), pixels)
    assert float(loss) == pytest.approx((0.25 + 1) / 2)


def test_a_mean_image_is_rounded_and_clipped() -> None:
    likelihood = SquareError(channels=1, bits=8)
    # By hand: (x + 1) / 2 * 255 is 127.5 + 127.5 x.
    found = likelihood.image(torch.tensor([[[[-3.0, 0.006, 0.0, 2.0, 1.0]]]]))
    assert found.flatten().tolist() == [0, 128, 128, 255, 255]


# Categorical


def test_a_categorical_needs_all_values_of_all_channels() -> None:
    assert Categorical(channels=3, bits=8).parameters == 768
    assert Categorical(channels=1, bits=4).parameters == 16


def test_equal_scores_cost_the_log_of_the_number_of_values() -> None:
    likelihood = Categorical(channels=3)
    pixels = random_pixels((2, 3, 4, 4))
    loss = likelihood.loss(torch.zeros(2, 768, 4, 4), pixels)
    assert float(loss) == pytest.approx(math.log(256), rel=1e-6)  # 5.545
    nats = likelihood.nats(torch.zeros(2, 768, 4, 4), pixels)
    torch.testing.assert_close(nats, torch.full((2,), 48 * math.log(256)))


@pytest.mark.parametrize("batch", [2, 700])
def test_nats_and_gradients_are_those_of_torchs_cross_entropy(batch: int) -> None:
    likelihood = Categorical(channels=3, bits=5)
    pixels = random_pixels((batch, 3, 4, 5), bits=5)
    scores = torch.randn(batch, 96, 4, 5, requires_grad=True)
    twin = scores.detach().clone().requires_grad_()
    expected = functional.cross_entropy(
        twin.view(batch, 32, 3, 4, 5), pixels, reduction="none"
    ).sum((1, 2, 3))
    found = likelihood.nats(scores, pixels)
    torch.testing.assert_close(found, expected)
    weights = torch.randn(batch)
    (found @ weights).backward()
    (expected @ weights).backward()
    torch.testing.assert_close(scores.grad, twin.grad)


def test_a_categorical_image_is_the_mean_of_its_values() -> None:
    likelihood = Categorical(channels=1, bits=2)
    scores = torch.tensor([0.5, 0.0, 0.0, 0.5]).log().view(1, 4, 1, 1)
    # By hand: half of 0 and half of 3 is 1.5, and rounding goes to the even 2.
    assert int(likelihood.image(scores)) == 2


# Mixture of logistics


def by_hand(likelihood: LogisticMixture, parameters: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    """Nats of each image, bin by bin, from scipy's distribution functions in float64."""
    channels, components = likelihood.channels, likelihood.components
    top = 2**likelihood.bits - 1
    floor = -7 + math.log(255 / top)
    rows = parameters.reshape(len(parameters), -1, components, *parameters.shape[2:])
    logits, means = rows[:, 0], rows[:, 1 : 1 + channels]
    log_scales = np.clip(rows[:, 1 + channels : 1 + 2 * channels], floor, 7)
    couplings = np.tanh(rows[:, 1 + 2 * channels :])
    total = logits - logsumexp(logits, axis=1, keepdims=True)
    pair = 0
    for channel in range(channels):
        mean = means[:, channel].copy()
        for before in range(channel):
            mean += couplings[:, pair] * (2 * pixels[:, None, before] / top - 1)
            pair += 1
        value = pixels[:, None, channel]
        middle = 2 * value / top - 1
        bump = logistic(loc=mean, scale=np.exp(log_scales[:, channel]))
        lower = np.where(value == 0, -np.inf, middle - 1 / top)
        upper = np.where(value == top, np.inf, middle + 1 / top)
        # From whichever end the difference keeps its digits.
        mass = np.where(
            middle > mean, bump.sf(lower) - bump.sf(upper), bump.cdf(upper) - bump.cdf(lower)
        )
        total = total + np.log(mass)
    return -logsumexp(total, axis=1).reshape(len(pixels), -1).sum(1)


@pytest.mark.parametrize(
    ("channels", "components", "parameters"), [(3, 10, 100), (1, 10, 30), (2, 5, 30), (4, 2, 30)]
)
def test_a_mixture_needs_a_weight_means_scales_and_couplings(
    channels: int, components: int, parameters: int
) -> None:
    assert LogisticMixture(channels, components=components).parameters == parameters


@pytest.mark.parametrize(("channels", "bits"), [(1, 8), (3, 8), (2, 3), (4, 6), (3, 1), (1, 12)])
def test_nats_are_those_of_scipys_logistic(channels: int, bits: int) -> None:
    likelihood = LogisticMixture(channels, bits, components=3)
    generator = torch.Generator().manual_seed(1)
    parameters = 1.5 * torch.randn(
        4, likelihood.parameters, 5, 3, dtype=torch.float64, generator=generator
    )
    pixels = random_pixels((4, channels, 5, 3), bits)
    pixels[:, :, 0], pixels[:, :, 1] = 0, 2**bits - 1
    expected = by_hand(likelihood, parameters.numpy(), pixels.numpy())
    found = likelihood.nats(parameters, pixels.int())
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-8)


def test_gradients_are_those_of_finite_differences() -> None:
    likelihood = LogisticMixture(3, 2, components=2)
    generator = torch.Generator().manual_seed(1)
    parameters = torch.randn(
        2, likelihood.parameters, 2, 2, dtype=torch.float64, generator=generator
    )
    pixels = random_pixels((2, 3, 2, 2), bits=2)
    assert torch.autograd.gradcheck(
        lambda x: likelihood.nats(x, pixels), parameters.requires_grad_()
    )


def narrow(mean: float, log_scale: float, bits: int = 8) -> tuple[LogisticMixture, Tensor]:
    """One bump of one channel: weight, mean, log-scale."""
    likelihood = LogisticMixture(1, bits, components=1)
    return likelihood, torch.tensor([0.0, mean, log_scale]).view(1, 3, 1, 1)


def test_far_from_a_bump_the_cost_rises_without_end() -> None:
    likelihood, parameters = narrow(mean=-1.0, log_scale=-7.0)
    found = [
        float(likelihood.nats(parameters, torch.full((1, 1, 1, 1), value)))
        for value in (100, 150, 200, 250)
    ]
    # By hand: the log-mass falls by one for each scale, and 50 values are 100/255 wide.
    step = 100 / 255 * math.exp(7)
    assert np.diff(found) == pytest.approx([step] * 3, rel=1e-4)


@pytest.mark.parametrize("bits", [1, 4, 8, 12])
def test_the_floor_of_scales_follows_the_width_of_a_bin(bits: int) -> None:
    likelihood, sharp = narrow(mean=0.0, log_scale=-50.0, bits=bits)
    middle = 1 / (2**bits - 1)
    sharp[0, 1] = middle  # in the middle of a bin
    value = torch.full((1, 1, 1, 1), 2 ** (bits - 1), dtype=torch.int32)
    # By hand: half a bin over the smallest scale is exp(7) / 255 = 4.30 at every depth, and a
    # logistic has 1 - 2 / (1 + exp(4.30)) of its mass so near; white has all above, too.
    inside = 1 / (1 + math.exp(-math.exp(7) / 255))
    mass = inside if bits == 1 else 2 * inside - 1
    assert float(likelihood.nats(sharp, value)) == pytest.approx(-math.log(mass), rel=1e-3)


def test_a_scale_below_its_floor_learns_its_way_back() -> None:
    likelihood, parameters = narrow(mean=0.0, log_scale=-9.0)
    near, far = torch.full((1, 1, 1, 1), 127), torch.full((1, 1, 1, 1), 200)
    parameters.requires_grad_()
    (wider,) = torch.autograd.grad(likelihood.loss(parameters, far), parameters)
    assert float(wider[0, 2]) < 0
    parameters.data[0, 1] = -1 / 255
    (narrower,) = torch.autograd.grad(likelihood.loss(parameters, near), parameters)
    assert float(narrower[0, 2]) == 0


def test_a_channel_is_shifted_by_the_ones_before_it() -> None:
    likelihood = LogisticMixture(3, 8, components=1)
    # Weight; three means; three log-scales; couplings red-green, red-blue, green-blue.
    strong = math.atanh(0.5)
    rows = [0.0, 0.5, 0.1, 0.2, -6.0, -6.0, -6.0, strong, strong, -strong]
    parameters = torch.tensor(rows).view(1, 10, 1, 1)
    image = likelihood.image(parameters).flatten()
    # By hand: red 0.5; green 0.1 + 0.5 red = 0.35; blue 0.2 + 0.5 red - 0.5 green = 0.275.
    expected = [round((x + 1) / 2 * 255) for x in (0.5, 0.35, 0.275)]
    assert image.tolist() == expected
    pixels = image.view(1, 3, 1, 1)
    for channel in range(3):
        best = likelihood.probabilities(parameters, pixels, channel).argmax()
        assert abs(int(best) - expected[channel]) <= 1


def test_channels_before_tell_which_bump_it_is() -> None:
    likelihood = LogisticMixture(2, 8, components=2)
    # Two equal bumps: both channels dark, or both channels light; no couplings.
    rows = [0.0, 0.0, -0.8, 0.8, -0.8, 0.8, -5.0, -5.0, -5.0, -5.0, 0.0, 0.0]
    parameters = torch.tensor(rows).view(1, 12, 1, 1)
    for first in (26, 230):
        pixels = torch.tensor([first, 0]).view(1, 2, 1, 1)
        shares = likelihood.probabilities(parameters, pixels, 1).flatten()
        dark = float(shares[:128].sum())
        assert dark == pytest.approx(1.0 if first == 26 else 0.0, abs=1e-6)


def test_a_mixture_has_components() -> None:
    with pytest.raises(ConfigError, match="components"):
        LogisticMixture(3, components=0)
