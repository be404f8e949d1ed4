"""Checks that an entry of FROM that is called is a table function, and that one which is not called is none."""

from __future__ import annotations

from millstream.errors import BindError, did_you_mean
from millstream.lang import ast
from millstream.logical.catalog import Catalog


def check_called(source: ast.Source, name: str, catalog: Catalog) -> None:
    """Raise BindError if a table function lacks its arguments, or something else has some."""
    function = catalog.table_function(name)
    with source.placing():
        if source.arguments is None and function is not None:
            written = ", ".join(each.name for each in function.arguments or ())
            raise BindError("M2129", f"'{name}' is a table function", hint=f"call it: {name}({written})")
        if source.arguments is not None and function is None:
            known = [each for each, view in catalog.views if view.arguments is not None]
            hint = did_you_mean(name, known) or "CREATE FUNCTION name (argument type, …) RETURNS TABLE AS SELECT …"
            if name in catalog:
                hint = "leave the parentheses out"
            what = "is not a function" if name in catalog else "is an unknown table function"
            raise BindError("M2129", f"'{name}' {what}", hint=hint)
