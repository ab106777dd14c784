"""Packages that are only needed for some images: imported late, missed in plain words."""

from __future__ import annotations

import importlib
from typing import Any

from smalti.errors import MissingExtraError


def pillow(module: str) -> Any:
    """A module of Pillow, such as ``"Image"``."""
    return _imported(
        f"PIL.{module}", "pictures need the package pillow", 'pip install "smalti[images]"'
    )


def scikit_learn(module: str) -> Any:
    """A module of scikit-learn, such as ``"datasets"``."""
    return _imported(
        f"sklearn.{module}",
        "the digits need the package scikit-learn",
        'pip install scikit-learn, or pip install "smalti[demo]"',
    )


def datasets() -> Any:
    """The package datasets."""
    return _imported(
        "datasets", "sets of the Hugging Face hub need the package datasets", "pip install datasets"
    )


def _imported(module: str, need: str, remedy: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(f"{need}: {remedy}") from error
