"""Registries of sources, sinks and scheduling strategies by name, which other packages can extend.

A package adds its own by an entry point in the group of the registry. Entry points are looked up when a name is not yet
known, and each is imported on first use of its name: an unused package costs nothing, and a broken one does not affect
the others. Names are case-insensitive.

>>> fruit = Registry[str]("docs.fruit", {"apple": "red"}, fits=lambda thing: isinstance(thing, str))
>>> fruit.register("pear", "green")
>>> fruit.get("Pear"), fruit.get("plum"), fruit.names()
('green', None, ['apple', 'pear'])
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from typing import Any, Generic, TypeVar

from millstream.errors import OptionError, reason_of

T = TypeVar("T")
BESIDE = {
    "millstream.commands": {"demo": "millstream_demo.cli:demo"},
    "millstream.sources": {
        "rfid": "millstream_demo.generators.rfid:RFID",
        "traffic": "millstream_demo.generators.traffic:TRAFFIC",
    },
}
"""What the package of the demos adds, which every installation has: it is found without a search of all packages."""


class Registry(Generic[T]):
    """A registry for one entry-point group. `fits` returns whether an object is of the registry's kind."""

    def __init__(self, group: str, builtin: Mapping[str, T], *, fits: Callable[[object], bool] = callable) -> None:
        self.group, self._fits = group, fits
        beside = BESIDE.get(group, {})
        self._beside = {name: [EntryPoint(name, value, group)] for name, value in beside.items()}
        self._builtin = frozenset({*builtin, *beside})
        self.known = dict(builtin)
        """The imported entries by name."""

    def register(self, name: str, thing: T) -> None:
        """Add an entry for this process; it replaces one of the same name, as when a notebook cell runs again."""
        self._check_name(name, f"'{name}'")
        self._check(thing, f"'{name}'")
        self.known[name.lower()] = thing

    def get(self, name: str) -> T | None:
        """The entry of that name, or None; raise OptionError if several packages provide it, or it cannot be loaded."""
        name = name.lower()
        if name not in self.known:
            points = self._beside.get(name) or self._points().get(name)
            if points:
                self.known[name] = self._load(points)
        return self.known.get(name)

    def has(self, name: str) -> bool:
        """Whether there is such a name without a search of all packages, which takes long."""
        return name.lower() in self.known or name.lower() in self._beside

    def load(self) -> None:
        """Import the entries of all packages."""
        for name in self.names():
            self.get(name)

    def names(self) -> list[str]:
        """All names; the known ones first, in order of registration, then those of packages."""
        others = {*self._beside, *self._points()}
        return [*self.known, *sorted(others - self.known.keys())]

    def _points(self) -> dict[str, list[EntryPoint]]:
        found: dict[str, list[EntryPoint]] = {}
        for point in _installed(self.group, tuple((folder, _changed(folder)) for folder in sys.path)):
            self._check_name(point.name, self._named(point))
            found.setdefault(point.name.lower(), []).append(point)
        return found

    def _load(self, points: list[EntryPoint]) -> Any:
        named = sorted(map(self._named, points))
        if len(points) > 1:
            message = f"several packages provide '{points[0].name.lower()}'"
            raise OptionError("M6006", message, detail=f"They are {', '.join(named)}.", hint="uninstall one")
        try:
            thing = points[0].load()
        except Exception as error:
            raise OptionError("M6007", f"{named[0]} cannot be loaded", detail=f"{reason_of(error)}.") from error
        self._check(thing, named[0])
        return thing

    def _check_name(self, name: str, named: str) -> None:
        if name.lower() in self._builtin:
            raise OptionError("M6006", f"{named} takes a built-in name", hint="choose another name")

    def _check(self, thing: object, named: str) -> None:
        if not self._fits(thing):
            raise OptionError("M6007", f"{named} does not fit into {self.group}", detail=f"It is {thing!r}.")

    def _named(self, point: EntryPoint) -> str:
        package = "?" if point.dist is None else point.dist.name
        return f"entry point '{point.name} = {point.value}' ({self.group}) of package '{package}'"


@lru_cache
def _installed(group: str, _: tuple[tuple[str, int], ...]) -> EntryPoints:
    """The entry points of a group: packages are searched again when Python's path or a folder of it has changed."""
    return entry_points(group=group)


def _changed(folder: str) -> int:
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return 0
