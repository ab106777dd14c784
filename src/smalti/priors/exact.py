"""Arithmetic whose results have the same bits in any order, batch and number of threads.

Sums of floating-point numbers depend on the order of adding, and matrix products change that
order with the batch, the threads and the processor. Here all factors are first rounded to a
grid of binary fractions so coarse, in float64, that no product and no sum has to be rounded
any more: whatever the order, the result is the true one. What is left are single operations
on single numbers, which IEEE 754 defines to the last bit: plus, times, divide, square root.
The exponential and the Gaussian integral, which it does not define, are read from tables.

Reference:
    Ballé, Johnston, Minnen, "Integer Networks for Data Compression with Latent-Variable
    Models", ICLR 2019.

Differs from the paper:
    The network is trained as usual and rounded afterwards, finely enough for the likelihood
    not to notice. Integers are kept in float64, for which there are fast matrix products.
"""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

# Bits of a float64 that a sum of products can fill.
MANTISSA = 53
# Factors of products: steps of 2^-14 up to 2^7, weights in steps of 2^-16.
ACTIVATION_BITS, ACTIVATION_RANGE = 14, 7
WEIGHT_BITS = 16
# What layers add up: steps of 2^-20 up to 2^16.
STREAM_BITS, STREAM_RANGE = 20, 16
# Shares of attention before they are normalised, at most 1.
SHARE_BITS = 20
# Tables: exp(-x) from 0 to 24 in coarse steps of 2^-8 and fine ones of 2^-16, the Gaussian
# integral from -8 to 8 in steps of 2^-6; entries in steps of 2^-33.
EXP_END, EXP_COARSE_BITS, EXP_FINE_BITS = 24, 8, 16
GAUSS_END, GAUSS_BITS = 8, 6
TABLE_BITS = 33
# The least weight of a code beside the likeliest: an entropy coder can't write an impossible one.
LEAST_SHARE = 2.0**-24


def on_grid(x: Tensor, bits: int, reach: int) -> Tensor:
    """``x`` rounded to multiples of 2^-bits, at most 2^reach in size."""
    limit = 2.0 ** (bits + reach)
    return (x * 2.0**bits).round_().clamp_(-limit, limit).mul_(2.0**-bits)


def activation(x: Tensor) -> Tensor:
    """``x`` as a factor of an exact product."""
    return on_grid(x, ACTIVATION_BITS, ACTIVATION_RANGE)


def stream(x: Tensor) -> Tensor:
    """``x`` as a term of exact sums."""
    return on_grid(x, STREAM_BITS, STREAM_RANGE)


def weight(x: Tensor) -> Tensor:
    """A matrix ``(out, in)`` as the other factor: the more terms, the less may each be."""
    room = MANTISSA - ACTIVATION_BITS - ACTIVATION_RANGE - WEIGHT_BITS
    return on_grid(x, WEIGHT_BITS, room - _bits_of(x.shape[1]))


def dense(x: Tensor, matrix: Tensor, bias: Tensor) -> Tensor:
    """Activations ``(n, in)`` times a weight ``(out, in)``; the bias is added afterwards."""
    return x @ matrix.T + bias


def normalised(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The layer norm of streams ``(n, dim)``, as activations."""
    share = 1 / x.shape[-1]
    centred = x - x.sum(dim=-1, keepdim=True) * share
    # By its largest number first, so that small and large vectors keep as many digits.
    inverse = centred.abs().amax(dim=-1, keepdim=True).clamp(min=2.0**-STREAM_BITS).reciprocal()
    scaled = on_grid(centred * inverse, (MANTISSA - _bits_of(x.shape[-1])) // 2, 0)
    variance = scaled.square().sum(dim=-1, keepdim=True) * share
    spread = (variance + inverse * inverse * eps).sqrt()
    return activation(scaled / spread * gain + bias)


def attended(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """What queries ``(..., 1, width)`` find in ``(..., n, width)``, all of them activations.

    Exact up to a width of 2048, where products of activations have filled all bits.
    """
    scores = query @ keys.transpose(-1, -2) * query.shape[-1] ** -0.5
    room = MANTISSA - ACTIVATION_BITS - ACTIVATION_RANGE - _bits_of(keys.shape[-2])
    shares = exp(scores - scores.amax(dim=-1, keepdim=True))
    shares = on_grid(shares, min(SHARE_BITS, room), 0)
    return activation(shares @ values / shares.sum(dim=-1, keepdim=True))


def gelu(x: Tensor) -> Tensor:
    """The activation of the dense layers, between two entries of a table on a straight line."""
    heights, slopes = _gauss_tables(x.device)
    place = (x.clamp(-GAUSS_END, GAUSS_END) + GAUSS_END) * 2.0**GAUSS_BITS
    entry = place.floor().clamp_(max=len(slopes) - 1)
    number = entry.long()
    return activation(x * (heights[number] + slopes[number] * (place - entry)))


def probabilities(logits: Tensor) -> Tensor:
    """Logits ``(..., size)`` as probabilities, none of them zero."""
    shares = exp(logits - logits.amax(dim=-1, keepdim=True))
    bits = min(TABLE_BITS, MANTISSA - _bits_of(logits.shape[-1]))
    shares = on_grid(shares, bits, 0).clamp_(min=LEAST_SHARE)
    return shares / shares.sum(dim=-1, keepdim=True)


def exp(x: Tensor) -> Tensor:
    """The exponential of numbers up to 0."""
    coarse, fine = _exp_tables(x.device)
    steps = (x * -(2.0**EXP_FINE_BITS)).round_().clamp_(max=EXP_END << EXP_FINE_BITS).long()
    between = EXP_FINE_BITS - EXP_COARSE_BITS
    return coarse[steps >> between] * fine[steps & ((1 << between) - 1)]


def exp_entries() -> tuple[list[float], list[float]]:
    """Exponentials for the tables, before rounding."""
    coarse = range((EXP_END << EXP_COARSE_BITS) + 1)
    fine = range(1 << (EXP_FINE_BITS - EXP_COARSE_BITS))
    return (
        [math.exp(-number / 2**EXP_COARSE_BITS) for number in coarse],
        [math.exp(-number / 2**EXP_FINE_BITS) for number in fine],
    )


def gauss_entries() -> list[float]:
    """The Gaussian integral for the table, before rounding."""
    last = 2 * GAUSS_END << GAUSS_BITS
    places = (number / 2**GAUSS_BITS - GAUSS_END for number in range(last + 1))
    return [0.5 * math.erfc(-place / math.sqrt(2)) for place in places]


@functools.cache
def _exp_tables(device: torch.device) -> tuple[Tensor, Tensor]:
    coarse, fine = exp_entries()
    return _table(coarse, device), _table(fine, device)


@functools.cache
def _gauss_tables(device: torch.device) -> tuple[Tensor, Tensor]:
    heights = _table(gauss_entries(), device)
    return heights, heights.diff()


def _table(entries: list[float], device: torch.device) -> Tensor:
    # Coarser than any library's error: every machine rounds to the same entries.
    return on_grid(torch.tensor(entries, dtype=torch.float64), TABLE_BITS, 0).to(device)


def _bits_of(terms: int) -> int:
    """How many bits a sum of so many terms is longer than each of them."""
    return (terms - 1).bit_length()
