"""The relations that a query reads or writes."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.lang import ast
from millstream.lang.table.ast import Write
from millstream.logical.catalog import Catalog


def relations(node: ast.Node) -> Iterator[str]:
    """The names of all relations that a query reads or writes, as spelled in its text."""
    if isinstance(node, Write):
        yield node.statement.table
    if isinstance(node, ast.Source) and isinstance(node.relation, str):
        yield node.relation
    for child in node.children():
        yield from relations(child)


def over_tables(query: ast.Runs, catalog: Catalog) -> bool:
    """Return whether a query reads tables alone, so that it runs once."""
    read = [*relations(query)]
    return bool(read) and not any(is_stream(name, catalog) for name in read)


def is_stream(name: str, catalog: Catalog) -> bool:
    """Return whether a relation is neither a table, nor a view over tables, nor a table function."""
    return not catalog.is_table(name) and catalog.view(name) is None
