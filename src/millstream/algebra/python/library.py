"""The Python functions and aggregates that SQL can name.

`LIBRARY` has those that modules register for all connections of the process; each mill has a library of its own, which
is searched first. A package provides functions by entry points in the group `millstream.functions`, which are looked
up when a name is not known otherwise.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, overload

from millstream.algebra.python import code as codes
from millstream.algebra.python.aggregate import define_aggregate
from millstream.algebra.python.definition import Declaration, Definition, define_function
from millstream.errors import BindError, OptionError, did_you_mean, reason_of
from millstream.registry import Registry

Code = TypeVar("Code", bound=Callable[..., Any])
ENTRY_POINTS: Registry[Any] = Registry("millstream.functions", {})


class Library:
    """Declarations by name, in lower case. `outer` is searched for names that this library does not have."""

    def __init__(self, outer: Library | None = None) -> None:
        self._outer = outer
        self._own: dict[str, Declaration | None] = {}
        """None: the name was dropped, and hides one of the outer library."""

    def add(self, definition: Definition) -> None:
        """Add a function or aggregate; it replaces one of the same name, as when a notebook cell runs again."""
        codes.provide({definition.reference: definition})
        self.declare(definition.declaration)

    def declare(self, declaration: Declaration) -> None:
        """Add a declaration whose code may be missing."""
        self._own[declaration.name] = declaration

    def find(self, name: str) -> Declaration | None:
        name = name.lower()
        if name in self._own:
            return self._own[name]
        return None if self._outer is None else self._outer.find(name)

    def drop(self, name: str, kind: str, *, if_exists: bool = False) -> None:
        """Drop a function or an aggregate from this library; raise BindError if there is none."""
        found = self.find(name)
        if found is None or found.kind != kind:
            if if_exists:
                return
            known = [each.name for each in self if each.kind == kind]
            raise BindError("M2111", f"unknown {kind} '{name}'", hint=did_you_mean(name, known))
        self._own[name.lower()] = None

    def __iter__(self) -> Iterator[Declaration]:
        """All declarations, by name."""
        names = {*self._own, *(each.name for each in self._outer or ())}
        found = (self.find(name) for name in sorted(names))
        return (declaration for declaration in found if declaration is not None)


class ProcessLibrary(Library):
    """The library of the process, with the functions that packages provide."""

    def find(self, name: str) -> Declaration | None:
        found = super().find(name)
        if found is not None or name.lower() not in ENTRY_POINTS.names():
            return found
        loaded = ENTRY_POINTS.get(name)
        if super().find(name) is None and loaded is not None:  # otherwise its module has registered it
            self.add(define_function(loaded, name=name))
        return super().find(name)


LIBRARY = ProcessLibrary()


@overload
def function(code: Code, /, **options: Any) -> Code: ...
@overload
def function(**options: Any) -> Callable[[Code], Code]: ...


def function(code: Code | None = None, /, **options: Any) -> Any:
    """Register a scalar function for all connections of this process; a decorator, with or without options.

    `name`        its name in SQL; default: that of the function
    `arguments`   the types of its arguments; default: as its annotations say
    `returns`     the type of its result
    `vectorized`  'polars' or 'arrow': it is called with whole columns; default: as its annotations say
    `version`     takes the place of its source in its digest, so that its text may change between runs
    """
    return registering(LIBRARY, define_function, code, options)


@overload
def aggregate(code: Code, /, **options: Any) -> Code: ...
@overload
def aggregate(**options: Any) -> Callable[[Code], Code]: ...


def aggregate(code: Code | None = None, /, **options: Any) -> Any:
    """Register an aggregate, a class, for all connections of this process; a decorator, with or without options.

    `name`          its name in SQL; default: that of the class
    `arguments`     the types of its arguments; default: as `iterate` is annotated
    `returns`       the type of its result, or the types of its columns by name
    `ignore_nulls`  do not call it for tuples with a NULL among the arguments
    `vectorized`    'polars' or 'arrow': `iterate` takes whole columns; default: as it is annotated
    `version`       takes the place of its source in its digest, so that its text may change between runs
    """
    return registering(LIBRARY, define_aggregate, code, options)


def registering(library: Library, define: Callable[..., Definition], code: Any, options: dict[str, Any]) -> Any:
    """Add code to a library and return it unchanged; without code, return a decorator that does so."""

    known = [name for name, each in inspect.signature(define).parameters.items() if each.kind is each.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            raise OptionError("M6001", f"unknown option '{name}'", hint=did_you_mean(name, known))

    def register(decorated: Any) -> Any:
        library.add(define(decorated, **options))
        return decorated

    return register if code is None else register(code)


def load_module(name: str) -> None:
    """Import a module whose functions SQL will name; raise OptionError if that fails."""
    from importlib import import_module

    folder = ""  # as `python -m` does
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        import_module(name)
    except Exception as error:
        hint = "a module on Python's path, such as my_functions for my_functions.py in this folder"
        raise OptionError(
            "M6025", f"module '{name}' cannot be imported", detail=f"{reason_of(error)}.", hint=hint
        ) from error
