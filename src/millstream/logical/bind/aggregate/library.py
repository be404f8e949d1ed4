"""The aggregates of the library, bound when they are first called.

Their bodies call built-in functions alone: what a program registers under the same names does not change them.
"""

from __future__ import annotations

from functools import cache

from millstream.algebra.aggregate import functions as aggregates
from millstream.algebra.python.library import Library
from millstream.lang import parse
from millstream.lang.aggregate.ast import CreateAggregate
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


@cache
def _bound(name: str) -> UserAggregate:
    catalog = Catalog()
    catalog.library = Library()
    for statement in parse(library.text(name)):
        assert isinstance(statement, CreateAggregate)
        catalog.add_aggregate(bind_aggregate(statement, catalog))
    return catalog.aggregates[name]
