"""The pixels of an image as a stream of symbols, each channel given those before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import Tensor

from smalti.autoencoders.likelihoods import Likelihood
from smalti.codec.frequencies import frequencies
from smalti.codec.symbols import Stream, SymbolReader, SymbolWriter
from smalti.layers.modes import one_thread

# Probabilities formed at a time: rows of an image, so many that these fit.
BLOCK = 1 << 20


def write_pixels(
    likelihood: Likelihood, parameters: Iterable[Tensor], pixels: Iterable[Tensor]
) -> Stream:
    """Code images under the likelihood.

    Args:
        likelihood: With probabilities; ``exact`` must be True.
        parameters: ``(1, parameters, height, width)`` of each image.
        pixels: ``(channels, height, width)`` of each image.
    """
    writer = SymbolWriter()
    for known, image in zip(parameters, pixels, strict=True):
        whole = image[None].cpu()
        for rows in _strips(likelihood, known):
            strip = whole[:, :, rows]
            for channel in range(likelihood.channels):
                counts = _frequencies(likelihood, known[:, :, rows], strip, channel)
                writer.put(strip[0, channel].flatten().numpy(), counts)
    return writer.finish()


def read_pixels(
    likelihood: Likelihood,
    parameters: Iterable[Tensor],
    stream: Stream,
    where: str = "the stream of pixels",
) -> Tensor:
    """The images ``(n, channels, height, width)`` that :func:`write_pixels` coded.

    Args:
        likelihood: The same as in writing.
        parameters: As in writing, the same bits.
        stream: What was written.
        where: What the stream is, for messages.
    """
    reader = SymbolReader(stream, where)
    images = []
    for known in parameters:
        size = known.shape[2:]
        image = torch.zeros(1, likelihood.channels, *size, dtype=torch.int32)
        for rows in _strips(likelihood, known):
            strip = image[:, :, rows]
            for channel in range(likelihood.channels):
                counts = _frequencies(likelihood, known[:, :, rows], strip, channel)
                strip[0, channel] = torch.from_numpy(reader.take(counts)).view(-1, size[1])
        images.append(likelihood.as_whole(image))
    reader.finish()
    return torch.cat(images)


def _frequencies(
    likelihood: Likelihood, parameters: Tensor, pixels: Tensor, channel: int
) -> np.ndarray:
    """Counts ``(positions, 2**bits)`` of a channel's values; one image, one strip, one thread."""
    with one_thread():
        shares = likelihood.probabilities(parameters.contiguous(), pixels.contiguous(), channel)
        return frequencies(shares.flatten(0, 2).numpy())


def _strips(likelihood: Likelihood, parameters: Tensor) -> Iterator[slice]:
    """Slices of rows, known from the shape alone, so that memory stays bounded."""
    height, width = parameters.shape[2:]
    step = max(1, BLOCK // (width * likelihood.values))
    for first in range(0, height, step):
        yield slice(first, min(first + step, height))
