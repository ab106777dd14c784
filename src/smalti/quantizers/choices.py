"""Settings that are objects: given as an object, as plain data, or as a word for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smalti.errors import ConfigError, require
from smalti.registry import hint
from smalti.specs import setting_names


def choose(setting: str, value: Any, options: Mapping[str, type[Any]]) -> Any:
    """The strategy object that ``value`` names.

    Args:
        setting: What is being chosen, for the message.
        value: An object, its plain data ``{"kind": word, ...}``, or a word.
        options: The words and what they stand for.
    """
    if isinstance(value, tuple(options.values())):
        return value
    settings: dict[str, Any] = {}
    if isinstance(value, Mapping):
        settings = {key: item for key, item in value.items() if key != "kind"}
        value = value.get("kind")
    if not isinstance(value, str) or value not in options:
        known = ", ".join(repr(word) for word in options)
        raise ConfigError(f"expected {setting} to be one of {known}, got {value!r}")
    known_settings = setting_names(options[value])
    for name in settings:
        require(
            name in known_settings,
            f"{setting} {value!r} has no setting {name}{hint(name, known_settings)}; it has: "
            f"{', '.join(known_settings) or 'none'}",
        )
    try:
        return options[value](**settings)
    except TypeError as error:
        raise ConfigError(f"can't make {setting} {value!r}: {error}") from error
