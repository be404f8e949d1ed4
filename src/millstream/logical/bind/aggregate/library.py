"""The aggregates of the library, bound when they are first called.

Their bodies call built-in functions alone: what a program registers under the same names does not change them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from millstream.algebra.aggregate import functions as aggregates
from millstream.algebra.expression import Expression, Literal
from millstream.algebra.program.program import Program
from millstream.algebra.python.library import Library
from millstream.algebra.types import Type, format_value
from millstream.errors import BindError
from millstream.lang import parse
from millstream.lang.aggregate.ast import CreateAggregate, UserCall
from millstream.logical import library
from millstream.logical.bind.aggregate.definition import bind_aggregate
from millstream.logical.catalog import Catalog, UserAggregate


def find(name: str, catalog: Catalog, *, over: bool = False) -> UserAggregate | None:
    """The aggregate that a name means, with OVER or without: one of the user's, or of the library; None: it is built
    in, or no aggregate."""
    if name in catalog.aggregates:
        return catalog.aggregates[name]
    built_in = aggregates.find(name)
    if built_in is not None and over and not built_in.over:
        return _bound(built_in.name.lower())
    return _bound(name) if name in library.names() and built_in is None else None


def check_arguments(program: Program, arguments: Iterable[Expression]) -> None:
    """Raise BindError if an aggregate of the library cannot take an argument."""
    for given, declared in zip(arguments, program.arguments, strict=True):
        limits = library.LIMITS.get((program.name, declared.name))
        if limits is None or not any(program is own for own in _bound(program.name).versions):
            continue
        if declared.type is Type.BIGINT and given.type is Type.VARCHAR:
            message = f"{program.name} takes numbers, and with OVER no texts"
            hint = "make a number of the text by a function in Python, such as zlib.crc32(text.encode())"
            raise BindError("M2006", message, hint=hint)
        if isinstance(given, Literal) and given.value is not None:
            least, most = limits
            if not least <= given.value <= most:
                within = f"at least {least}" if most == float("inf") else f"between {least} and {most}"
                message = f"{declared.name} of {program.name} must be {within}, not {format_value(given.value)}"
                raise BindError("M2009", message)


def is_of_library(call: UserCall) -> bool:
    """True if a call means an aggregate of the library, not one of the user's."""
    versions = call.versions
    if not isinstance(versions, UserAggregate):
        return False
    name = versions.versions[0].name
    return name in library.names() and versions is _bound(name)


@cache
def _bound(name: str) -> UserAggregate:
    catalog = Catalog()
    catalog.library = Library()
    for statement in parse(library.text(name)):
        assert isinstance(statement, CreateAggregate)
        catalog.add_aggregate(bind_aggregate(statement, catalog))
    return catalog.aggregates[name]
