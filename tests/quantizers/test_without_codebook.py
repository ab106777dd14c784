"""What is particular to FiniteScalar, LookupFree, Identity and ChannelsFirst."""

from __future__ import annotations

import pytest
import torch

from smalti.errors import ConfigError, ShapeError
from smalti.quantizers import ChannelsFirst, FiniteScalar, Identity, LookupFree, VectorQuantizer


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_level_can_be_reached(dtype: torch.dtype) -> None:
    levels = (2, 3, 4, 5, 8, 16, 64)
    layer = FiniteScalar(7, levels).eval()
    x = torch.linspace(-6, 6, 20_001)[:, None].expand(-1, 7).to(dtype)
    codes = layer.encode(x)
    for coordinate, size in enumerate(levels):
        assert codes[:, coordinate].unique().tolist() == list(range(size))


def test_values_are_the_levels_scaled_to_one() -> None:
    layer = FiniteScalar(2, (3, 4))
    codes = torch.tensor([[0, 0], [1, 1], [2, 3]])
    assert layer.decode(codes).tolist() == [[-1, -1], [0, -0.5], [1, 0.5]]


def test_rounding_passes_the_gradient_of_the_squashing() -> None:
    layer = FiniteScalar(1, (5,))
    x = torch.tensor([[0.3]], requires_grad=True)
    layer(x).vectors.sum().backward()
    # d/dx of tanh(x) * 2.002 / 2 (five levels: half-width 2 with a reach of 1.001).
    expected = (1 - torch.tanh(torch.tensor(0.3)) ** 2) * 1.001
    assert x.grad is not None
    torch.testing.assert_close(x.grad[0, 0], expected)


def test_another_width_is_projected() -> None:
    layer = FiniteScalar(16, (8, 5, 5))
    out = layer(torch.randn(4, 16))
    assert out.vectors.shape == (4, 16)
    assert out.codes.shape == (4, 3)


@pytest.mark.parametrize("levels", [(), (1, 4), (2.5, 3)])
def test_impossible_levels_are_refused(levels: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError):
        FiniteScalar(3, levels)


def test_signs_become_codes() -> None:
    layer = LookupFree(3, 3).eval()
    out = layer(torch.tensor([[0.4, -2.0, 0.1]]))
    assert out.codes.tolist() == [[1, 0, 1]]
    assert out.vectors.tolist() == [[1, -1, 1]]


def test_the_entropy_term_prefers_sure_and_even_bits() -> None:
    layer = LookupFree(1, 1, beta=0.0, entropy_weight=1.0)
    sure_and_even = layer(torch.tensor([[9.0], [-9.0]])).loss
    sure_and_uneven = layer(torch.tensor([[9.0], [9.0]])).loss
    unsure = layer(torch.tensor([[0.01], [-0.01]])).loss
    # H of a sure bit is 0, of an even mean ln 2: the least possible is -ln 2.
    assert float(sure_and_even) == pytest.approx(-0.6931, abs=1e-3)
    assert sure_and_even < unsure
    assert sure_and_even < sure_and_uneven


def test_identity_has_no_codes() -> None:
    layer = Identity(4)
    x = torch.randn(3, 4)
    out = layer(x)
    assert torch.equal(out.vectors, x)
    assert out.codes.shape == (3, 0)
    assert layer.bits_per_vector == 0
    with pytest.raises(ConfigError, match="no codes"):
        layer.decode(out.codes)


def test_channels_first_equals_moving_the_axis() -> None:
    inner = VectorQuantizer(6, 16).start_from(torch.randn(50, 6)).eval()
    x = torch.randn(2, 6, 4, 3)
    out = ChannelsFirst(inner)(x)
    expected = inner(x.permute(0, 2, 3, 1))
    assert torch.equal(out.vectors, expected.vectors.permute(0, 3, 1, 2))
    assert torch.equal(out.codes, expected.codes)


def test_channels_on_the_wrong_axis_are_named() -> None:
    with pytest.raises(ShapeError, match=r"\(batch, 6, \.\.\.\), got \(2, 4, 3, 6\)"):
        ChannelsFirst(VectorQuantizer(6, 16))(torch.randn(2, 4, 3, 6))
