"""Convolutions along sequences, against torch's."""

from __future__ import annotations

import torch
from torch.nn import functional

from smalti.layers.packed_linear import PackedLinear
from smalti.layers.sequence_convolutions import Doubling, Halving, ResidualConvolution


def test_a_residual_convolution_is_torchs() -> None:
    layer = ResidualConvolution(6)
    x = torch.randn(2, 7, 6)
    kernel = layer.dense.weight.view(6, 3, 6).transpose(1, 2)
    bent = functional.gelu(layer.norm(x)).transpose(1, 2)
    expected = x + functional.conv1d(bent, kernel, layer.dense.bias, padding=1).transpose(1, 2)
    torch.testing.assert_close(layer(x), expected)
    with torch.no_grad():
        windows = torch.cat(layer.neighbours(x, None), dim=-1)
        packed = PackedLinear.of(layer.dense).added(windows.view(-1, 18), x.view(-1, 6))
        torch.testing.assert_close(packed.view(x.shape), expected)


def test_padding_counts_as_what_lies_beyond_the_end() -> None:
    layer, halving = ResidualConvolution(6), Halving(6)
    x = torch.randn(1, 8, 6)
    mask = (torch.arange(8) < 5).view(1, 8, 1)
    torch.testing.assert_close(layer(x, mask)[:, :5], layer(x[:, :5]))
    other = torch.where(mask, x, 100.0)
    torch.testing.assert_close(halving(other, mask), halving(x, mask))


def test_halving_is_a_convolution_of_stride_two_and_doubling_makes_two_of_one() -> None:
    halving, doubling = Halving(4), Doubling(4)
    x = torch.randn(3, 6, 4)
    kernel = halving.dense.weight.view(4, 2, 4).transpose(1, 2)
    bent = functional.gelu(halving.norm(x)).transpose(1, 2)
    expected = functional.conv1d(bent, kernel, halving.dense.bias, stride=2).transpose(1, 2)
    torch.testing.assert_close(halving(x), expected)
    up = doubling(x)
    first = functional.linear(x, doubling.dense.weight[:4], doubling.dense.bias[:4])
    assert up.shape == (3, 12, 4)
    torch.testing.assert_close(up[:, ::2], first)
