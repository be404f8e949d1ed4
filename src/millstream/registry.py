"""Things known by name, open to other packages: sources, sinks, scheduling strategies.

A package adds its own by an entry point in the group of the registry. Entry points are looked up when a name is not
known yet, and imported when their own name is asked for: a package costs nothing until it is used, and a broken one
does not harm the others. Names are not case-sensitive.

>>> fruit = Registry[str]("docs.fruit", {"apple": "red"}, fits=lambda thing: isinstance(thing, str))
>>> fruit.register("pear", "green")
>>> fruit.get("Pear"), fruit.get("plum"), fruit.names()
('green', None, ['apple', 'pear'])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from millstream.errors import OptionError, reason_of

T = TypeVar("T")


class Registry(Generic[T]):
    """`fits` tells whether a thing is one of the registry's kind."""

    def __init__(self, group: str, builtin: Mapping[str, T], *, fits: Callable[[object], bool] = callable) -> None:
        self.group, self._fits = group, fits
        self._builtin = frozenset(builtin)
        self.known = dict(builtin)
        """Those that are imported."""

    def register(self, name: str, thing: T) -> None:
        """Add a thing for this process; the last one of a name counts, as in a notebook whose cells run again."""
        self._check_name(name, f"'{name}'")
        self._check(thing, f"'{name}'")
        self.known[name.lower()] = thing

    def get(self, name: str) -> T | None:
        """The thing of that name; OptionError if packages clash over it or the one that brings it is broken."""
        name = name.lower()
        if name not in self.known and (points := self._points().get(name)):
            self.known[name] = self._load(points)
        return self.known.get(name)

    def load(self) -> None:
        """Import everything that packages bring."""
        for name in self.names():
            self.get(name)

    def names(self) -> list[str]:
        """All names, the built-in ones first."""
        return [*self.known, *sorted(self._points().keys() - self.known.keys())]

    def _points(self) -> dict[str, list[EntryPoint]]:
        found: dict[str, list[EntryPoint]] = {}
        for point in entry_points(group=self.group):
            self._check_name(point.name, self._named(point))
            found.setdefault(point.name.lower(), []).append(point)
        return found

    def _load(self, points: list[EntryPoint]) -> Any:
        named = sorted(map(self._named, points))
        if len(points) > 1:
            message = f"several packages bring '{points[0].name.lower()}'"
            raise OptionError("M6006", message, detail=f"They are {', '.join(named)}.", hint="uninstall one")
        try:
            thing = points[0].load()
        except Exception as error:
            raise OptionError("M6007", f"{named[0]} cannot be loaded", detail=f"{reason_of(error)}.") from error
        self._check(thing, named[0])
        return thing

    def _check_name(self, name: str, named: str) -> None:
        if name.lower() in self._builtin:
            raise OptionError("M6006", f"{named} takes a name that is built in", hint="it needs another name")

    def _check(self, thing: object, named: str) -> None:
        if not self._fits(thing):
            raise OptionError("M6007", f"{named} does not fit into {self.group}", detail=f"It is {thing!r}.")

    def _named(self, point: EntryPoint) -> str:
        package = "?" if point.dist is None else point.dist.name
        return f"entry point '{point.name} = {point.value}' ({self.group}) of package '{package}'"
