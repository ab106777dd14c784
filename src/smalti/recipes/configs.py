"""What can be trained from a config file, by its ``kind``."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict

from smalti.training import Settings, as_settings, read_settings

# Where the settings of a kind are, what they are called, and what trains them.
KINDS = {
    "autoencoder": ("smalti.recipes.images", "AutoencoderConfig", "train_run"),
    "translation": ("smalti.recipes.translation", "TranslationConfig", "train_translation_run"),
}


class _OfAnyKind(Settings):
    """A config of which only the kind is known yet."""

    model_config = ConfigDict(extra="allow")
    kind: Literal["autoencoder", "translation"]


def read_config(path: str | Path, changes: Sequence[str] = ()) -> Any:
    """The settings of a config file of any kind.

    Args:
        path: A YAML file.
        changes: ``key.sub=value`` entries that replace or add single settings.
    """
    content = read_settings(_OfAnyKind, path, changes)
    room, name, _ = KINDS[content.kind]
    kind: type[Settings] = getattr(import_module(room), name)
    return as_settings(kind, content.model_dump(), where=str(path))


def train_config(config: Any, run_directory: str | Path, resume: bool = False) -> Any:
    """Train what a config describes; see the recipe of its kind."""
    room, _, train = KINDS[config.kind]
    return getattr(import_module(room), train)(config, run_directory, resume)
