"""Images to a ``.smt`` file and back: their codes, and without loss their pixels too."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from smalti.artifacts import versions
from smalti.codec.code_streams import read_codes, write_codes
from smalti.codec.container import (
    CODES,
    PIXELS,
    Block,
    read_file,
    require_place,
    write_file,
)
from smalti.codec.exact_decoder import ExactDecoder
from smalti.codec.extras import constriction
from smalti.codec.header import Header, read_header
from smalti.codec.model import ImageModel, prior_names, require_fit
from smalti.codec.pixel_streams import read_pixels, write_pixels
from smalti.codec.predicting import predicted_code_bits, predicted_pixel_bits
from smalti.errors import ArtifactError, DataError, SmaltiError, require
from smalti.layers.modes import one_thread
from smalti.priors import LevelsPrior
from smalti.progress import progress_bar
from smalti.recipes.images.quality import unit_square_error

# Images that are walked at once: a walk keeps what it computed for each of their codes.
MOST_CODES = 1 << 14
MOST_IMAGES = 256


@dataclass(frozen=True)
class Encoded:
    """What a file takes.

    Args:
        file: Where it is.
        images: How many it holds.
        bytes: Of the whole file.
        code_bytes: Of the coded codes.
        pixel_bytes: Of the coded pixels; 0 where only codes are kept.
        predicted_code_bits: What the prior promises, as an evaluation rates it.
        predicted_pixel_bits: What the likelihood promises; 0 where only codes are kept.
        bits_per_pixel: Of the whole file.
        bits_per_dim: Of the whole file; a dimension is one channel of one pixel.
        mse_0_to_1: Squared error of what comes back where black is 0 and white is 1.
    """

    file: str
    images: int
    bytes: int
    code_bytes: int
    pixel_bytes: int
    predicted_code_bits: float
    predicted_pixel_bits: float
    bits_per_pixel: float
    bits_per_dim: float
    mse_0_to_1: float

    @property
    def predicted_bits(self) -> float:
        """Of codes and pixels: rate and distortion."""
        return self.predicted_code_bits + self.predicted_pixel_bits

    @property
    def excess(self) -> float:
        """How much longer the file is than predicted, as a share of that."""
        return 8 * self.bytes / self.predicted_bits - 1 if self.predicted_bits else math.inf

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)


@torch.no_grad()
def encode_images(
    model: ImageModel, pixels: Tensor, path: str | Path, lossless: bool = False
) -> Encoded:
    """Write images to a file; an older ``.smt`` file there is replaced.

    Args:
        model: An autoencoder with its prior, such as a trained run.
        pixels: Whole numbers ``(n, channels, height, width)``.
        path: Where.
        lossless: Whether the very pixels come back, not only what codes stand for.
    """
    constriction()  # Where it is missing, nothing is begun.
    place, autoencoder = Path(path), model.autoencoder
    pixels = autoencoder.likelihood.checked_pixels(pixels)
    require(len(pixels) > 0, "expected at least one image to encode, got none", DataError)
    require_fit(model, pixels.shape[2], pixels.shape[3], lossless)
    require_place(place)
    header = Header(
        model=model.fingerprint(),
        count=len(pixels),
        shape=(pixels.shape[1], pixels.shape[2], pixels.shape[3]),
        bits=autoencoder.bits,
        lossless=lossless,
        prior=prior_names(model.prior),
        versions={name: versions()[name] for name in ("smalti", "torch")},
    )
    decoder = ExactDecoder(autoencoder)
    blocks: list[Block] = []
    code_bits, pixel_bits, error = 0.0, 0.0, 0.0
    with progress_bar("encoding", "images", total=len(pixels)) as advance:
        for some in pixels.split(images_a_block(model.prior)):
            codes = _codes(model, some)
            blocks.append(Block(CODES, len(some), write_codes(model.prior, codes)))
            code_bits += predicted_code_bits(model, codes)
            known = _parameters(decoder, codes)
            if lossless:
                stream = write_pixels(decoder.likelihood, known, some)
                blocks.append(Block(PIXELS, len(some), stream))
                pixel_bits += predicted_pixel_bits(model, codes, some)
            else:
                again = torch.cat([_image(decoder, parameters) for parameters in known])
                error += float(unit_square_error(some.cpu(), again, autoencoder.bits).sum())
            advance(len(some))
    size = write_file(place, header.as_dict(), blocks)
    return Encoded(
        file=str(place),
        images=len(pixels),
        bytes=size,
        code_bytes=_payload(blocks, CODES),
        pixel_bytes=_payload(blocks, PIXELS),
        predicted_code_bits=code_bits,
        predicted_pixel_bits=pixel_bits,
        bits_per_pixel=8 * size / pixels[:, 0].numel(),
        bits_per_dim=8 * size / pixels.numel(),
        mse_0_to_1=error / len(pixels),
    )


def decode_images(path: str | Path, model: ImageModel) -> Tensor:
    """The images ``(n, channels, height, width)`` of a file.

    From a lossless file the very pixels, otherwise the images that the codes stand for.

    Args:
        path: What :func:`encode_images` wrote.
        model: The same as in writing.
    """
    header, blocks = _open(Path(path), model)
    decoder = ExactDecoder(model.autoencoder)
    likelihood = decoder.likelihood
    found: list[Tensor] = []
    with progress_bar("decoding", "images", total=header.count) as advance:
        for number, block in enumerate(blocks, start=1):
            where = f"block {number} of {path}"
            if block.kind == CODES:
                codes = read_codes(model.prior, block.images, block.stream, where)
                parameters = _parameters(decoder, codes)
                if not header.lossless:
                    found += [_image(decoder, known) for known in parameters]
            else:
                found.append(read_pixels(likelihood, parameters, block.stream, where))
            advance(block.images if (block.kind == PIXELS) == header.lossless else 0)
    return torch.cat(found)


def decode_codes(path: str | Path, model: ImageModel) -> tuple[Tensor, ...]:
    """The codes of a file's images, a grid ``(n, height, width, num_codebooks)`` a level.

    Args:
        path: What :func:`encode_images` wrote, lossless or not.
        model: The same as in writing.
    """
    _, blocks = _open(Path(path), model)
    found = [
        read_codes(model.prior, block.images, block.stream, f"block {number} of {path}")
        for number, block in enumerate(blocks, start=1)
        if block.kind == CODES
    ]
    return tuple(torch.cat(grids) for grids in zip(*found, strict=True))


def read_info(path: str | Path) -> Header:
    """What a file says of itself, after its checksums are compared; needs no model."""
    plain, _ = read_file(Path(path))
    return read_header(plain, Path(path))


def writer_of(path: str | Path, models: Iterable[ImageModel]) -> ImageModel:
    """The one of some models that wrote a file.

    Args:
        path: What :func:`encode_images` wrote.
        models: Such as one autoencoder with each of its priors.
    """
    wanted = read_info(path).model
    found = next((model for model in models if model.fingerprint() == wanted), None)
    if found is None:
        raise ArtifactError(
            f"{path} was written with another model, {wanted[:12]}...; decode with the run that "
            "encoded it"
        )
    return found


def images_a_block(prior: LevelsPrior) -> int:
    """How many images are coded together."""
    codes = sum(member.level.num_codes for member in prior.members())
    return max(1, min(MOST_IMAGES, MOST_CODES // codes))


def _open(path: Path, model: ImageModel) -> tuple[Header, list[Block]]:
    """A file that this model wrote."""
    constriction()
    plain, blocks = read_file(path)
    header = read_header(plain, path)
    ours = model.fingerprint()
    require(
        header.model == ours,
        f"{path} was written with the model {header.model[:12]}..., this is {ours[:12]}...; "
        "decode with the run that encoded it",
        ArtifactError,
    )
    kinds = [CODES, PIXELS] if header.lossless else [CODES]
    groups = [blocks[first : first + len(kinds)] for first in range(0, len(blocks), len(kinds))]
    fits = all(
        [block.kind for block in group] == kinds
        and len({block.images for block in group}) == 1
        and 0 < group[0].images <= MOST_IMAGES
        for group in groups
    )
    require(
        fits and sum(group[0].images for group in groups) == header.count,
        f"{path} is damaged: its blocks do not hold the {header.count} images of its header",
        ArtifactError,
    )
    channels, height, width = header.shape
    own = model.autoencoder
    try:
        require_fit(model, height, width, header.lossless)
    except SmaltiError as error:
        raise ArtifactError(f"{path} is damaged: {error}") from error
    require(
        (channels, header.bits) == (own.channels, own.bits),
        f"{path} is damaged: it says that it holds images of {channels} channels of {header.bits} "
        f"bits, its model makes {own.channels} of {own.bits}",
        ArtifactError,
    )
    return header, blocks


def _codes(model: ImageModel, pixels: Tensor) -> tuple[Tensor, ...]:
    """The codes of images, each looked at alone: its codes do not depend on its company."""
    device = next(model.autoencoder.parameters()).device
    with one_thread():
        found = [model.autoencoder.encode(image.to(device)) for image in pixels.split(1)]
    return tuple(torch.cat(grids) for grids in zip(*found, strict=True))


def _parameters(decoder: ExactDecoder, codes: Sequence[Tensor]) -> Iterator[Tensor]:
    """What the likelihood reads, image after image."""
    for number in range(len(codes[0])):
        yield decoder.parameters([grid[number : number + 1] for grid in codes])


def _image(decoder: ExactDecoder, parameters: Tensor) -> Tensor:
    with one_thread():
        return decoder.likelihood.image(parameters)


def _payload(blocks: Sequence[Block], kind: bytes) -> int:
    return sum(len(block.stream.payload) for block in blocks if block.kind == kind)
