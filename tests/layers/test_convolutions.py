"""Blocks of convolutions: shapes, and what they compute."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from smalti.errors import ConfigError
from smalti.layers.convolutions import (
    Downsample,
    InceptionBlock,
    ResidualBlock,
    ResidualStack,
    Upsample,
)


def test_a_residual_block_adds_to_what_came_in() -> None:
    block = ResidualBlock(4, 6)
    x = torch.randn(2, 4, 5, 7)
    before = x.clone()
    wide, narrow = (layer for layer in block.modules() if isinstance(layer, nn.Conv2d))
    inner = functional.conv2d(x.relu(), wide.weight, wide.bias, padding=1)
    expected = x + functional.conv2d(inner.relu(), narrow.weight, narrow.bias)
    torch.testing.assert_close(block(x), expected)
    # Negative numbers pass the skip: no ReLU has touched the input.
    assert torch.equal(x, before)


def test_a_block_whose_weights_are_zero_changes_nothing() -> None:
    block = ResidualBlock(4, 6)
    for weight in block.parameters():
        nn.init.zeros_(weight)
    x = torch.randn(2, 4, 5, 7)
    assert torch.equal(block(x), x)


def test_a_stack_ends_in_a_relu() -> None:
    stack = ResidualStack(4, 6, depth=3)
    assert sum(isinstance(layer, ResidualBlock) for layer in stack) == 3
    x = torch.randn(2, 4, 5, 7)
    out = stack(x)
    assert out.shape == x.shape
    assert float(out.detach().min()) == 0.0


def test_an_inception_block_has_a_quarter_of_its_channels_from_each_branch() -> None:
    block = InceptionBlock(8, 3)
    x = torch.randn(2, 8, 6, 5)
    out = block(x)
    assert out.shape == x.shape
    point = block.branches[0]
    assert isinstance(point, nn.Conv2d)
    torch.testing.assert_close(out[:, :2], point(x).relu())
    with pytest.raises(ConfigError, match="divisible by 4"):
        InceptionBlock(6, 3)


def reach(layer: nn.Module, channel: int) -> int:
    """How many columns of the input one output number depends on."""
    x = torch.randn(1, 8, 15, 15, requires_grad=True)
    (gradient,) = torch.autograd.grad(layer(x)[0, channel, 7, 7], x)
    return int(gradient.abs().sum((0, 1, 2)).count_nonzero())


def test_the_branches_of_an_inception_block_reach_1_3_and_5_pixels() -> None:
    block = InceptionBlock(8, 3)
    with torch.no_grad():
        for weight in block.parameters():
            # Positive everywhere, so that no ReLU closes a path.
            weight.copy_(weight.abs() + 0.1)
        for layer in block.modules():
            if isinstance(layer, nn.Conv2d) and layer.bias is not None:
                layer.bias.fill_(100.0)
    assert [reach(block, channel) for channel in (0, 2, 4)] == [1, 3, 5]


@pytest.mark.parametrize("kernel", [2, 3, 4, 5])
@pytest.mark.parametrize(("height", "width"), [(2, 2), (8, 12), (10, 6)])
def test_sides_are_halved_and_doubled_exactly(kernel: int, height: int, width: int) -> None:
    x = torch.randn(2, 3, height, width)
    small = Downsample(3, 5, kernel)(x)
    assert small.shape == (2, 5, height // 2, width // 2)
    assert Upsample(5, 4, kernel)(small).shape == (2, 4, height, width)
