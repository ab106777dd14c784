"""Libraries of the extra ``train``, imported when they are first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from smalti.errors import MissingExtraError


def library(module: str, what: str) -> Any:
    """An optional module; without it, an error that says what needs it.

    Args:
        module: Its name, such as ``"yaml"``.
        what: What can't be done without it, as the beginning of a sentence.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{what} the extra train: pip install 'smalti[train]' ({error})"
        ) from error
