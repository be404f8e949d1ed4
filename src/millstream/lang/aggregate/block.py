"""The statements of a block: INSERT, UPDATE and DELETE of local tables, with subqueries."""

from __future__ import annotations

from collections.abc import Callable

from millstream.lang import ast
from millstream.lang.aggregate import ast as body
from millstream.lang.cursor import Cursor
from millstream.lang.expressions import expression, expressions
from millstream.lang.query import query

_RETURNED = "INSERT INTO RETURN SELECT … FROM t"


def statements(cursor: Cursor) -> tuple[body.Local, ...]:
    """Parse `{ statement; … }`."""
    cursor.expect_symbol("{")
    found: list[body.Local] = []
    with cursor.body(query):
        while not cursor.accept_symbol("}"):
            if cursor.accept_symbol(";"):
                continue
            found.append(_statement(cursor))
            if not cursor.at_symbol("}"):
                if not cursor.at_symbol(";"):
                    cursor.fail("';' or '}'")
                cursor.advance()
    return tuple(found)


def _statement(cursor: Cursor) -> body.Local:
    if cursor.at("SELECT"):
        cursor.fail("INSERT, UPDATE or DELETE", hint=_RETURNED)
    word = cursor.choice([*_STATEMENTS], "INSERT, UPDATE, DELETE or '}'")
    return _STATEMENTS[word](cursor)


def _insert(cursor: Cursor) -> body.Insert:
    here = cursor.previous.place
    cursor.expect("INTO")
    table = cursor.name("a local table or RETURN")
    columns: tuple[str, ...] = ()
    if cursor.at_symbol("(") and cursor.ahead().upper != "SELECT":
        columns = cursor.names("a column")
    if not cursor.accept("VALUES"):
        if not (cursor.at("SELECT") or cursor.at_symbol("(")):
            cursor.fail("VALUES or SELECT")
        return body.Insert(table, columns, query=query(cursor), **here)
    rows = cursor.listed(_row)
    return body.Insert(table, columns, rows, where(cursor), **here)


def _row(cursor: Cursor) -> tuple[ast.Expr, ...]:
    cursor.expect_symbol("(")
    found = expressions(cursor)
    cursor.expect_symbol(")")
    return found


def _update(cursor: Cursor) -> body.Update:
    here = cursor.previous.place
    table = cursor.name("a local table")
    cursor.expect("SET")
    return body.Update(table, cursor.listed(assignment), where(cursor), **here)


def assignment(cursor: Cursor) -> body.Assignment:
    token = cursor.token
    name = cursor.name("a column")
    cursor.expect_symbol("=")
    return body.Assignment(name, expression(cursor), **token.place)


def _delete(cursor: Cursor) -> body.Delete:
    here = cursor.previous.place
    cursor.expect("FROM")
    return body.Delete(cursor.name("a local table"), where(cursor), **here)


def where(cursor: Cursor) -> ast.Expr | None:
    return expression(cursor) if cursor.accept("WHERE") else None


_STATEMENTS: dict[str, Callable[[Cursor], body.Local]] = {"INSERT": _insert, "UPDATE": _update, "DELETE": _delete}
