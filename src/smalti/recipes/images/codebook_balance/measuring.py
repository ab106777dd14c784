"""The figures of one trained arm: distortion with its rate, codes in use, the gradient gap.

Reference:
    Chen, Reddy, Chen, Liu, "Balance of Number of Embedding and their Dimensions in Vector
    Quantization", NeurIPS 2024, arXiv:2407.04939, section 4 and equation 5.

Differs from the paper:
    Every image of the set counts once, and the error is a mean; the published numbers are sums
    over batches. The rate stands beside it: a place of a pool costs the choice of a codebook
    and a word of it, and more where all codebooks are told.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from smalti.autoencoders import Convolutional, gradient_gap
from smalti.codes import Usage
from smalti.data.images import Images
from smalti.errors import require
from smalti.priors import Level, Unigram
from smalti.quantizers import Adaptive, Quantizer
from smalti.recipes.images.batching import BLOCK, blocks
from smalti.recipes.images.coding import encode_all
from smalti.recipes.images.quality import psnr, unit_square_error
from smalti.recipes.images.saved_run import Run

# Images of the gradient gap, each twice through the decoder and back.
GAP_IMAGES = 512


@torch.no_grad()
def measure(run: Run, images: Images, known: Images) -> dict[str, Any]:
    """Measure a model of one grid; figures of a pool's choice are there where it has one.

    Args:
        run: The model.
        images: To judge by, best none that it was trained on.
        known: Those it was trained on; their codes are counted, for the rate of coded files.

    Returns:
        ``mse_0_to_1`` and ``psnr_db``; the rate of a place: ``rate_bits`` where all words of a
        codebook are equally likely, ``coded_bits`` with the counted words, and both of a subpixel;
        ``codes_in_use`` of ``codewords``; ``gradient_gap`` and ``relative_gradient_gap``;
        ``selection_bits`` and ``shares`` of a pool's codebooks, else None.
    """
    model = run.autoencoder
    require(
        isinstance(model, Convolutional),
        f"expected a model with one grid of codes, convolutional, got {type(model).__name__}",
    )
    assert isinstance(model, Convolutional)  # for the type checker
    (codes,), (seen,) = encode_all(model, images.pixels), encode_all(model, known.pixels)
    mse = _square_error(model, images, codes)
    places = codes[0, ..., 0].numel() / images.pixels[0].numel()
    coded = _coded_bits(model.quantizer, codes, seen)
    gap, relative = _gap(model, images.pixels[:GAP_IMAGES])
    told = place_figures(model.quantizer, codes)
    return {
        "images": len(images),
        "mse_0_to_1": mse,
        "psnr_db": psnr(mse) if mse > 0 else None,
        **told,
        "rate_bits_per_dim": told["rate_bits"] * places,
        "coded_bits": coded,
        "coded_bits_per_dim": coded * places,
        "gradient_gap": gap,
        "relative_gradient_gap": relative,
    }


def place_figures(quantizer: Quantizer, codes: Tensor) -> dict[str, Any]:
    """What a place of grids of codes tells.

    Args:
        quantizer: That of the grids.
        codes: ``(n, height, width, num_codebooks)``.

    Returns:
        ``rate_bits`` where all words of a codebook are equally likely, ``codes_in_use`` of
        ``codewords``, ``selection_bits`` and ``shares`` of a pool's codebooks, else None.
    """
    shares = _shares(quantizer, codes)
    choice = 0.0 if shares is None else float(torch.special.entr(shares).sum()) / math.log(2)
    return {
        "rate_bits": choice + _word_bits(quantizer, shares),
        **_usage(quantizer, codes),
        "selection_bits": None if shares is None else choice,
        "shares": None if shares is None else shares.tolist(),
    }


def _square_error(model: Convolutional, images: Images, codes: Tensor) -> float:
    total, begin = 0.0, 0
    for pixels in blocks(images.pixels, "evaluating"):
        again = model.likelihood.image(model.decode([codes[begin : begin + len(pixels)].long()]))
        total += float(unit_square_error(pixels, again, images.bits).sum())
        begin += len(pixels)
    return total / len(images)


def _shares(quantizer: Quantizer, codes: Tensor) -> Tensor | None:
    """How often each codebook of a pool was chosen."""
    if not isinstance(quantizer, Adaptive):
        return None
    counts = torch.bincount(codes[..., 0].flatten().long(), minlength=len(quantizer.pool))
    return counts.double() / counts.sum()


def _word_bits(quantizer: Quantizer, shares: Tensor | None) -> float:
    """Of the words at a place, when all of a codebook are equally likely."""
    if not isinstance(quantizer, Adaptive) or shares is None:
        return quantizer.bits_per_vector
    bits = torch.tensor([math.log2(size) for size, _ in quantizer.pool], dtype=shares.dtype)
    return float(bits.sum() if quantizer.selection == "slab" else shares @ bits)


def _symbols(quantizer: Quantizer, codes: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    """Codes ``(n, symbols)`` of all places, and their sizes; a pool is one large codebook."""
    flat = codes.flatten(0, -2).long()
    if not isinstance(quantizer, Adaptive) or quantizer.selection == "slab":
        return flat, quantizer.code_sizes
    sizes = torch.tensor([size for size, _ in quantizer.pool])
    begins = sizes.cumsum(0) - sizes
    return (begins[flat[:, 0]] + flat[:, 1])[:, None], (int(sizes.sum()),)


def _coded_bits(quantizer: Quantizer, codes: Tensor, seen: Tensor) -> float:
    """Bits of a place's codes when each is coded with its share among the codes seen before."""
    symbols, sizes = _symbols(quantizer, codes)
    before, _ = _symbols(quantizer, seen)
    # One table for all places: a place alone sees too few codes of a large codebook.
    prior = Unigram(Level((1, 1), sizes), smoothing=0.5).fit(before[:, None, None])
    return float(prior.nats(symbols[:, None, None]).double().mean()) / math.log(2)


def _usage(quantizer: Quantizer, codes: Tensor) -> dict[str, int]:
    symbols, sizes = _symbols(quantizer, codes)
    if isinstance(quantizer, Adaptive) and quantizer.selection == "slab":
        # The choice is no codeword.
        symbols, sizes = symbols[:, 1:], sizes[1:]
    usage = Usage(sizes)
    usage.update(symbols)
    in_use = sum(usage[book].in_use for book in range(len(usage)))
    return {"codes_in_use": in_use, "codewords": sum(sizes)}


def _gap(model: Convolutional, pixels: Tensor) -> tuple[float, float]:
    """The means over images of both sizes of the gap."""
    total = torch.zeros(2, dtype=torch.float64)
    for block in pixels.split(BLOCK):
        with torch.enable_grad():
            total += len(block) * torch.tensor(gradient_gap(model, block), dtype=torch.float64)
    size, relative = (total / len(pixels)).tolist()
    return size, relative
