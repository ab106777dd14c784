"""Sets that are known by name, and where their files may lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from smalti.data.images.collection import Images
from smalti.data.images.extras import scikit_learn
from smalti.data.images.parts import require_whole
from smalti.data.locate import locate
from smalti.errors import DataError

DIGITS = "digits"
# Whole sets come before parts of them. A file within a folder stands for the folder.
FILES: dict[str, tuple[str, ...]] = {
    "cifar10": (
        "images/cifar10.npz",
        "images/cifar10/data_batch_1",
        "images/cifar10/data_batch_1.bin",
        "images/cifar-10-batches-py/data_batch_1",
        "images/cifar-10-batches-bin/data_batch_1.bin",
        "images/cifar10_10k2k.npz",
    ),
    "fashion_mnist": ("images/fashion_mnist.npz", "images/fashion_mnist/train-images-idx3-ubyte"),
    "mnist": ("images/mnist.npz", "images/mnist/train-images-idx3-ubyte"),
    "tiny_imagenet": (
        "images/tiny_imagenet.npz",
        "images/tiny_imagenet/wnids.txt",
        "images/tiny-imagenet-200/wnids.txt",
        "images/tiny_imagenet_10k2k_jpeg.npz",
    ),
}


def known_names() -> list[str]:
    """The sets that :func:`read_images` knows by name."""
    return sorted([DIGITS, *FILES])


def known_place(name: str) -> Path:
    """The file or folder of a known set."""
    files = FILES[name]
    problem: DataError | None = None
    for file in files:
        try:
            path = locate(file)
        except DataError as error:
            # The first says where the set is public.
            problem = problem or error
        else:
            return path if path.suffix == ".npz" else path.parent
    raise DataError(f"{problem} (also good: {', '.join(files[1:])})") from problem


def read_digits(split: str) -> Images:
    """The 1,797 digits of 8 x 8 pixels that come with scikit-learn.

    Their pixels are 0 to 16, so they have 5 bits and not all values are in use.
    """
    require_whole(split, DIGITS)
    bunch = scikit_learn("datasets").load_digits()
    pixels = torch.from_numpy(bunch.images.astype(np.uint8)).unsqueeze(1)
    labels = torch.from_numpy(bunch.target.astype(np.int64))
    return Images(pixels, 5, labels, "the digits of scikit-learn")
