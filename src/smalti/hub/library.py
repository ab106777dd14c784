"""The transformers library, imported when it is first needed, and kept quiet while it works."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeAlias

from smalti.errors import MissingExtraError

# A transformers.PreTrainedModel. Type checkers need not read all of transformers.
Model: TypeAlias = Any


def transformers_library() -> Any:
    """The ``transformers`` module."""
    try:
        return import_module("transformers")
    except ImportError as error:
        raise MissingExtraError(
            f"Hugging Face models need the extra hf: pip install 'smalti[hf]' ({error})"
        ) from error


@contextmanager
def quiet() -> Iterator[None]:
    """Without progress bars and the story of each attempt to reach the Hub; warnings stay."""
    bars = transformers_library().utils.logging
    shown = bars.is_progress_bar_enabled()
    attempts = logging.getLogger("huggingface_hub.utils._http")
    level = attempts.level
    bars.disable_progress_bar()
    attempts.setLevel(logging.ERROR)
    try:
        yield
    finally:
        attempts.setLevel(level)
        if shown:
            bars.enable_progress_bar()
