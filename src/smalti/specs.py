"""Objects as plain data and back: a name in a registry, and the settings of its class."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from smalti.errors import ConfigError, UnknownSettingError, require
from smalti.registry import Registry, hint, nearest


def setting_names(kind: type) -> list[str]:
    """The names of the settings that a class takes."""
    parameters = inspect.signature(kind).parameters.values()
    return [item.name for item in parameters if item.kind is not item.VAR_KEYWORD]


def takes_any_setting(kind: type) -> bool:
    """Whether a class hands further settings on to its parts."""
    parameters = inspect.signature(kind).parameters.values()
    return any(item.kind is item.VAR_KEYWORD for item in parameters)


def spec_of(member: Any, family: Registry[Any], key: str) -> dict[str, Any]:
    """What ``build_from`` needs to make an equal object; each setting is an attribute."""
    settings = {name: as_plain(getattr(member, name)) for name in setting_names(type(member))}
    return {key: family.name_of(type(member)), **settings}


def as_plain(value: Any) -> Any:
    """A setting as JSON data: strategies become mappings, members of a family their specs."""
    if hasattr(value, "spec"):
        return value.spec()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"kind": getattr(value, "kind", ""), **dataclasses.asdict(value)}
    if isinstance(value, (str, int, float, type(None), Mapping)):
        return value
    return [as_plain(item) for item in value]


def build_from(
    family: Registry[Any], key: str, spec: Mapping[str, Any] | str, more: Mapping[str, Any]
) -> Any:
    """Make the member of ``family`` that ``spec[key]`` names, with the other entries as settings.

    Args:
        family: Where the name is looked up.
        key: Which entry of the spec is the name.
        spec: A mapping, or the name alone.
        more: Settings besides those of the spec.
    """
    if isinstance(spec, str):
        spec = {key: spec}
    require(
        isinstance(spec, Mapping) and key in spec and all(isinstance(k, str) for k in spec),
        f"expected a name, or a mapping with the key {key!r}, got {spec!r}",
    )
    given = {name: value for name, value in {**spec, **more}.items() if name != key}
    kind = family.get(spec[key])
    known = setting_names(kind)
    unknown = sorted(set(given) - set(known))
    if unknown and not takes_any_setting(kind):
        raise _unknown(key, spec[key], unknown, known)
    missing = [name for name in _needed(kind) if name not in given]
    meant = nearest(missing[0], unknown) if missing else None
    require(
        not missing,
        f"{spec[key]} needs the setting {', '.join(missing)}"
        + (f"; is that what {meant} was meant to be?" if meant else ""),
    )
    try:
        return kind(**given)
    except UnknownSettingError as error:
        if not set(error.unknown) <= set(unknown):
            raise
        # It was handed on to a part. Whoever wrote it may have meant the whole.
        raise _unknown(key, spec[key], error.unknown, [*known, *error.known]) from None
    except TypeError as error:
        raise ConfigError(f"can't build {spec[key]}: {error}") from error


def _needed(kind: type) -> list[str]:
    """The settings without which nothing can be built."""
    parameters = inspect.signature(kind).parameters.values()
    loose = {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    return [
        item.name for item in parameters if item.default is item.empty and item.kind not in loose
    ]


def _unknown(
    key: str, member: str, unknown: Sequence[str], known: Sequence[str]
) -> UnknownSettingError:
    shown = [f"{name}{hint(name, known)}" for name in unknown]
    listed = ", ".join(dict.fromkeys(known)) or "none"
    message = f"{member} has no setting {', '.join(shown)}; it has: {listed}"
    return UnknownSettingError(message, key, member, unknown, known)
