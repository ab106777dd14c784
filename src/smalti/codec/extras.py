"""The library of the extra ``codec``, imported when it is first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from smalti.errors import MissingExtraError


def constriction() -> Any:
    """The module ``constriction.stream``; without it, an error that says what is missing."""
    try:
        return import_module("constriction").stream
    except ImportError as error:
        raise MissingExtraError(
            "writing and reading .smt files needs the extra codec: pip install 'smalti[codec]' "
            f"({error})"
        ) from error
