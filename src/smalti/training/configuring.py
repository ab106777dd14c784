"""Settings from YAML files, ``--set key.sub=value`` and Python, with errors that name the key."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from smalti.errors import ConfigError, require
from smalti.registry import nearest
from smalti.training.extras import library

Kind = TypeVar("Kind", bound=BaseModel)
# What a plain word of a file means. PyYAML's own rules are those of YAML 1.1, which reads
# 1e-4 as text, no as false and 12:30 as 750.
PLAIN_WORDS = (
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9_]*)", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+0123456789."),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+."),
    ("merge", r"<<", "<"),
)


class Settings(BaseModel):
    """Plain settings that can't change; whatever is wrong with them is a ``ConfigError``.

    Example:
        >>> class Oven(Settings):
        ...     degrees: int = 180
        >>> Oven(degres=200)
        Traceback (most recent call last):
        smalti.errors.ConfigError: there is no setting degres; did you mean degrees?
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigError(_explained(error, type(self))) from None

    # As pydantic marks its own constructors: settings inside of settings are then checked by
    # the outermost, which knows the whole name of a key. Silenced because type checkers know of
    # no attributes that functions are given later.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


def read_settings(kind: type[Kind], path: str | Path, changes: Sequence[str] = ()) -> Kind:
    """Settings from a YAML file.

    Args:
        kind: Which settings.
        path: The file.
        changes: ``key.sub=value`` entries that replace or add single settings; a value is
            read as YAML.
    """
    text = _text_of(Path(path))
    content = _parsed(text, str(path))
    require(
        content is None or isinstance(content, dict),
        f"{path}: expected settings, a line 'key: value' each, got {content!r}",
    )
    return as_settings(kind, with_changes(content or {}, changes), where=str(path))


def as_settings(kind: type[Kind], content: Mapping[str, Any], where: str = "") -> Kind:
    """Settings from plain data.

    Args:
        kind: Which settings.
        content: Values by key.
        where: What the content was read from, for messages.
    """
    try:
        return kind.model_validate(dict(content))
    except ValidationError as error:
        raise ConfigError(_explained(error, kind, where)) from None


def with_changes(content: Mapping[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    """A copy of ``content`` in which some settings are others.

    Args:
        content: Values by key.
        changes: ``key.sub=value`` entries; a value is read as YAML. In a list a key is the
            number of an entry, from 0 on.

    Example:
        >>> with_changes({"training": {"steps": 5}}, ["training.steps=7"])
        {'training': {'steps': 7}}
        >>> with_changes({"levels": [{"dim": 4}, {"dim": 8}]}, ["levels.1.dim=16"])
        {'levels': [{'dim': 4}, {'dim': 16}]}
    """
    made: Any = dict(content)
    for change in changes:
        name, sign, text = change.partition("=")
        keys = name.split(".")
        require(bool(sign) and all(keys), f"expected --set key.sub=value, got {change!r}")
        where = f"--set {change}"
        made = _with_change(made, keys, _parsed(text, where), where)
    changed: dict[str, Any] = made
    return changed


def _with_change(content: Any, keys: Sequence[str], value: Any, where: str, depth: int = 0) -> Any:
    """A copy of a mapping or a list with another value at a place in it."""
    if depth == len(keys):
        return value
    name, above = keys[depth], ".".join(keys[:depth])
    if isinstance(content, (list, tuple)):
        last = len(content) - 1
        require(
            name.isdecimal() and int(name) <= last,
            f"{where}: {above} is a list, expected the number of an entry, 0 to {last}, got {name}"
            if content
            else f"{where}: {above} is an empty list and has no {name}; set all of it",
        )
        entries, place = list(content), int(name)
        entries[place] = _with_change(entries[place], keys, value, where, depth + 1)
        return entries
    require(
        content is None or isinstance(content, Mapping),
        f"{where}: {above} is {content!r} and has no parts; set all of it: "
        f"--set '{above}={{{name}: ...}}'",
    )
    parts = dict(content or {})
    parts[name] = _with_change(parts.get(name), keys, value, where, depth + 1)
    return parts


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"can't read the config file {path}: {error}") from error


def _parsed(text: str, where: str) -> Any:
    yaml = library("yaml", "Config files need")
    try:
        return yaml.load(text, _loader())
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"{where} is not YAML: {' '.join(str(error).split())}") from error


@functools.cache
def _loader() -> Any:
    """A loader of plain data only, which refuses a key that stands twice."""
    yaml = library("yaml", "Config files need")
    loader: Any = type("ConfigLoader", (yaml.SafeLoader,), {"yaml_implicit_resolvers": {}})
    for tag, pattern, first in PLAIN_WORDS:
        starts = ["" if letter == "\0" else letter for letter in first]
        loader.add_implicit_resolver(
            f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), starts
        )

    def unique(reader: Any, node: Any) -> Any:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen and isinstance(key.value, str):
                message = f"the key {key.value!r} stands twice"
                raise yaml.constructor.ConstructorError(None, None, message, key.start_mark)
            seen |= {key.value} if isinstance(key.value, str) else set()
        return yaml.SafeLoader.construct_yaml_map(reader, node)

    loader.add_constructor("tag:yaml.org,2002:map", unique)
    return loader


def _explained(error: ValidationError, kind: type[BaseModel], where: str = "") -> str:
    """All faults in one line, the unknown keys with the known ones that are nearest."""
    found = error.errors(include_url=False)
    places = [fault["loc"] for fault in found]
    faults = [
        _fault(kind, fault["type"], fault["loc"], fault["msg"], fault["input"])
        for fault in found
        if not _is_other_choice(fault["type"], fault["loc"], places)
    ]
    return (f"{where}: " if where else "") + "; ".join(faults)


def _is_other_choice(
    fault: str, place: tuple[int | str, ...], places: Sequence[tuple[int | str, ...]]
) -> bool:
    """Whether a fault is that a value is not of a type, where another type fits at least partly.

    Of a value that may be of several types, pydantic names the faults with each of them, behind
    the name of the type.
    """
    above = place[:-1]
    return fault.endswith("_type") and any(
        len(other) > len(place) and other[: len(above)] == above and other[: len(place)] != place
        for other in places
    )


def _fault(
    kind: type[BaseModel], fault: str, place: tuple[int | str, ...], message: str, value: Any
) -> str:
    steps, owners = _followed(kind, place, unknown=fault == "extra_forbidden")
    key = ".".join(steps)
    if fault == "extra_forbidden":
        return _unknown_key(kind, steps, owners)
    if fault == "missing":
        return f"the setting {key} is missing"
    if fault == "union_tag_invalid":
        known = message.rpartition("expected tags: ")[2]
        return f"{key}: there is no kind {value['kind']!r}; the known ones are: {known}"
    if fault == "value_error":
        message = message.removeprefix("Value error, ")
        return f"{key}: {message}" if key else message
    message = message.replace("Input should be", "expected")
    return f"{key or 'settings'}: {message[0].lower()}{message[1:]}, got {value!r}"


def _followed(
    kind: type[BaseModel], place: tuple[int | str, ...], unknown: bool
) -> tuple[list[str], list[type[BaseModel]]]:
    """The keys of a place, without pydantic's names for alternatives; and whose the last is."""
    steps: list[str] = []
    owners: list[type[BaseModel]] = [kind]
    for depth, step in enumerate(place, start=1):
        last = depth == len(place)
        fields = [owner.model_fields[step] for owner in owners if step in owner.model_fields]
        if fields or isinstance(step, int) or (last and unknown) or not owners:
            steps.append(str(step))
        if fields and not last:
            owners = [part for field in fields for part in _settings_in(field.annotation)]
    return steps, owners


def _unknown_key(kind: type[BaseModel], steps: list[str], owners: list[type[BaseModel]]) -> str:
    *above, last = steps
    known = {name: ".".join([*above, name]) for owner in owners for name in owner.model_fields}
    elsewhere = [key for key in _all_keys(kind) if key.rpartition(".")[2] == last]
    like = nearest(last, known)
    meant = elsewhere[0] if elsewhere else known.get(like or "")
    if meant:
        return f"there is no setting {'.'.join(steps)}; did you mean {meant}?"
    return f"there is no setting {'.'.join(steps)}; the known ones are: {', '.join(known.values())}"


def _all_keys(kind: type[BaseModel], above: str = "", depth: int = 4) -> Iterator[str]:
    for name, field in kind.model_fields.items():
        yield f"{above}{name}"
        for part in _settings_in(field.annotation) if depth else ():
            yield from _all_keys(part, f"{above}{name}.", depth - 1)


def _settings_in(annotation: Any) -> list[type[BaseModel]]:
    """The settings that an annotation allows, through optional values, unions and lists."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [part for inner in get_args(annotation) for part in _settings_in(inner)]
