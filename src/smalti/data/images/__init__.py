"""Images as exact integers: found, read, cached, split, varied, resized and written."""

from smalti.data.images.augmentation import (
    Augmentation,
    Flip,
    FlipCrop,
    Unchanged,
    augmentations,
    build_augmentation,
)
from smalti.data.images.collection import Images, split
from smalti.data.images.grid import grid_picture
from smalti.data.images.known import known_names
from smalti.data.images.reading import read_images
from smalti.data.images.resizing import resized
from smalti.data.images.writing import write_images, write_picture

__all__ = [
    "Augmentation",
    "Flip",
    "FlipCrop",
    "Images",
    "Unchanged",
    "augmentations",
    "build_augmentation",
    "grid_picture",
    "known_names",
    "read_images",
    "resized",
    "split",
    "write_images",
    "write_picture",
]
