"""`CREATE FUNCTION name (argument type, …) RETURNS TABLE AS SELECT …`: a table function."""

from __future__ import annotations

from millstream.lang import ast
from millstream.lang.cursor import Cursor
from millstream.lang.expressions import type_name
from millstream.lang.query import query
from millstream.lang.table.ast import CreateTableFunction
from millstream.lang.tokens import Kind

_EXAMPLE = "CREATE FUNCTION above (least BIGINT) RETURNS TABLE AS SELECT k FROM t WHERE v > least"


def create_table_function(cursor: Cursor, name: str) -> CreateTableFunction:
    """Parse the statement after the name."""
    with cursor.like(_EXAMPLE):
        if not cursor.at_symbol("("):
            cursor.fail("'(' and the arguments")
        arguments = () if cursor.ahead().is_symbol(")") else cursor.in_parentheses(_argument)
        if not arguments:
            cursor.expect_symbol("(")
            cursor.expect_symbol(")")
        if cursor.at("RETURNS") and not cursor.at("RETURNS", "TABLE"):
            hint = "@millstream.function in a module of --functions, or @mill.function, registers one written in Python"
            cursor.not_yet("CREATE FUNCTION that returns a value", hint=hint)
        cursor.expect("RETURNS", "TABLE", "AS")
    return CreateTableFunction(name, query(cursor), arguments)


def _argument(cursor: Cursor) -> ast.ColumnDefinition:
    token = cursor.token
    name = cursor.name("the name of an argument")
    if cursor.token.kind is not Kind.WORD:
        cursor.fail(f"the type of argument '{name}'")
    return ast.ColumnDefinition(name, type_name(cursor), **token.place)
