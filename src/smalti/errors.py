"""Every error that smalti raises on purpose.

A message says what was expected, what came and what to do. The command line prints
a ``SmaltiError`` as one line; anything else is a bug and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Sequence


class SmaltiError(Exception):
    """The root of all errors that smalti raises on purpose."""


class ConfigError(SmaltiError, ValueError):
    """A setting that can't work."""


class UnknownSettingError(ConfigError):
    """A setting that the chosen member of a family does not have.

    Args:
        message: What is wrong.
        key: Which entry of the spec names the member, such as ``"quantizer"``.
        member: Its name.
        unknown: The settings that it does not have.
        known: Those that it has.
    """

    def __init__(
        self, message: str, key: str, member: str, unknown: Sequence[str], known: Sequence[str]
    ) -> None:
        super().__init__(message)
        self.key, self.member = key, member
        self.unknown, self.known = list(unknown), list(known)


class ShapeError(SmaltiError, ValueError):
    """A tensor of the wrong shape or type of number."""


class DataError(SmaltiError):
    """Values or files that can't be used: not finite, out of range, missing."""


class ArtifactError(SmaltiError):
    """A saved directory that is damaged, foreign or of another version."""


class MissingExtraError(SmaltiError, ImportError):
    """An optional dependency that is needed and not installed."""


def require(condition: bool, message: str, error: type[SmaltiError] = ConfigError) -> None:
    """Raise ``error`` with ``message`` unless ``condition`` holds."""
    if not condition:
        raise error(message)
