"""Binds what a query runs: a SELECT, or a statement that writes a table."""

from __future__ import annotations

from millstream.lang import ast
from millstream.lang.table.ast import Write
from millstream.logical.bind import query as select
from millstream.logical.bind.table.write import bind_write
from millstream.logical.catalog import Catalog
from millstream.logical.plan import Plan


def bind_select(query: ast.Runs, catalog: Catalog) -> Plan:
    """Return the plan of a query: names resolved, types checked, nothing optimized."""
    if isinstance(query, Write):
        return bind_write(query, catalog)
    assert isinstance(query, ast.Query)
    return select.bind_select(query, catalog)
