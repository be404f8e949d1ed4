"""The syntax tree of statements that write tables."""

from __future__ import annotations

from dataclasses import field

from millstream.lang import ast
from millstream.lang.aggregate import ast as body


class Conflict(ast.Node):
    """`ON CONFLICT [(key)] DO NOTHING`, or `DO UPDATE SET …`, which has assignments."""

    key: tuple[str, ...] = ()
    assignments: tuple[body.Assignment, ...] = ()
    where: ast.Expr | None = None


class Write(ast.Write):
    """`statement` runs once for each tuple of `source`; without it, once. `alias` names the row of the table."""

    statement: body.Local
    source: ast.Source | None = None
    alias: str | None = None
    conflict: Conflict | None = None


class WriteStatement(ast.SelectStatement):
    """A write by itself."""

    select: Write


class CreateView(ast.Created):
    select: ast.Query
    replaces: bool = field(default=False, kw_only=True)
    """With OR REPLACE."""


class CreateTableFunction(CreateView):
    """`CREATE FUNCTION name (argument type, …) RETURNS TABLE AS SELECT …`: a view whose query names arguments."""

    arguments: tuple[ast.ColumnDefinition, ...] = ()


class CalledSource(ast.Source):
    """A table function of FROM that the binder has replaced by its query, with the arguments that it declares."""

    parameters: tuple[ast.ColumnDefinition, ...] = ()
