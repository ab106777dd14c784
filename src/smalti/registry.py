"""Names for the members of a family: the registry is the only list of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from typing import Generic, TypeVar

from smalti.errors import ConfigError

Member = TypeVar("Member")


def nearest(name: object, known: Iterable[str]) -> str | None:
    """The known name that was probably meant; None where none is like it.

    Example:
        >>> nearest("codebok_size", ["dim", "codebook_size"])
        'codebook_size'
    """
    found = get_close_matches(str(name), list(known), n=1)
    return found[0] if found else None


def hint(name: object, known: Iterable[str]) -> str:
    """What to say after a name that is not known; nothing where no known one is like it.

    Example:
        >>> hint("codebok_size", ["dim", "codebook_size"])
        ' (did you mean codebook_size?)'
    """
    meant = nearest(name, known)
    return f" (did you mean {meant}?)" if meant else ""


class Registry(Generic[Member]):
    """Maps names to classes of one family.

    Example:
        >>> shapes = Registry[type]("shape")
        >>> @shapes.register("circle")
        ... class Circle: ...
        >>> shapes.names()
        ['circle']
    """

    def __init__(self, family: str) -> None:
        self.family = family
        self._members: dict[str, type[Member]] = {}

    def register(self, name: str) -> Callable[[type[Member]], type[Member]]:
        """Enter a class under ``name``; a second class of that name is a mistake."""

        def enter(member: type[Member]) -> type[Member]:
            known = self._members.get(name)
            if known is not None and known.__qualname__ != member.__qualname__:
                raise ConfigError(
                    f"the {self.family} name {name!r} belongs to {known.__qualname__} already; "
                    f"choose another for {member.__qualname__}"
                )
            self._members[name] = member
            return member

        return enter

    def get(self, name: str) -> type[Member]:
        """The class of that name; an unknown name lists the known ones."""
        try:
            return self._members[name]
        except (KeyError, TypeError):
            known = ", ".join(self.names())
            raise ConfigError(
                f"there is no {self.family} {name!r}{hint(name, self.names())}"
                f"; the known ones are: {known}"
            ) from None

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._members)

    def name_of(self, member: type[Member]) -> str:
        """The name a class was registered under."""
        for name, known in self._members.items():
            if known is member:
                return name
        raise ConfigError(f"{member.__qualname__} is not a registered {self.family}")

    def __iter__(self) -> Iterator[tuple[str, type[Member]]]:
        return iter(sorted(self._members.items()))

    def __len__(self) -> int:
        return len(self._members)
