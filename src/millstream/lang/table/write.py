"""INSERT, UPDATE and DELETE of tables, once or for each tuple of a stream.

INSERT INTO t [(columns)] SELECT … [ON CONFLICT [(key)] DO NOTHING | DO UPDATE SET column = value, …]
INSERT INTO t [(columns)] VALUES (…), …
UPDATE t [alias] SET column = value, … [FROM source] [WHERE condition]
DELETE FROM t [alias] [USING source] [WHERE condition]
"""

from __future__ import annotations

from collections.abc import Callable

from millstream.lang import ast
from millstream.lang.aggregate import ast as body
from millstream.lang.aggregate.block import assignment, where
from millstream.lang.cursor import Cursor
from millstream.lang.expressions import expressions
from millstream.lang.query import query, source
from millstream.lang.table.ast import Conflict, Write
from millstream.lang.tokens import Place


def write(cursor: Cursor) -> Write:
    """Parse a write, from its first word on."""
    word = cursor.choice([*WRITES], "INSERT, UPDATE or DELETE")
    return WRITES[word](cursor, cursor.previous.place)


def _insert(cursor: Cursor, here: Place) -> Write:
    with cursor.like("INSERT INTO t SELECT k, v FROM s"):
        cursor.expect("INTO")
        table = cursor.name("a table")
        columns: tuple[str, ...] = ()
        if cursor.at_symbol("(") and cursor.ahead().upper != "SELECT":
            columns = cursor.names("a column")
        if cursor.accept("VALUES"):
            rows = cursor.listed(_row)
            return Write(body.Insert(table, columns, rows, **here), conflict=_conflict(cursor), **here)
        if not (cursor.at("SELECT") or cursor.at_symbol("(")):
            cursor.fail("VALUES or SELECT")
    token = cursor.token
    read = ast.Source(query(cursor), "excluded", **token.place)
    return Write(body.Insert(table, columns, **here), read, conflict=_conflict(cursor), **here)


def _row(cursor: Cursor) -> tuple[ast.Expr, ...]:
    cursor.expect_symbol("(")
    found = expressions(cursor)
    cursor.expect_symbol(")")
    return found


def _conflict(cursor: Cursor) -> Conflict | None:
    token = cursor.token
    if not cursor.accept("ON"):
        return None
    with cursor.like("ON CONFLICT (k) DO UPDATE SET v = excluded.v"):
        cursor.expect("CONFLICT")
        key = cursor.names("a column of the key") if cursor.at_symbol("(") else ()
        cursor.expect("DO")
        if cursor.accept("NOTHING"):
            return Conflict(key, **token.place)
        cursor.expect("UPDATE", "SET")
        return Conflict(key, _assignments(cursor), _where(cursor), **token.place)


def _update(cursor: Cursor, here: Place) -> Write:
    with cursor.like("UPDATE t SET v = s.v FROM s WHERE t.k = s.k"):
        table, alias = _target(cursor)
        cursor.expect("SET")
        assignments = _assignments(cursor)
        read = source(cursor) if cursor.accept("FROM") else None
        return Write(body.Update(table, assignments, _where(cursor), **here), read, alias, **here)


def _delete(cursor: Cursor, here: Place) -> Write:
    with cursor.like("DELETE FROM t USING s WHERE t.k = s.k"):
        cursor.expect("FROM")
        table, alias = _target(cursor)
        read = source(cursor) if cursor.accept("USING") else None
        return Write(body.Delete(table, _where(cursor), **here), read, alias, **here)


def _assignments(cursor: Cursor) -> tuple[body.Assignment, ...]:
    with cursor.body(query):
        return cursor.listed(assignment)


def _where(cursor: Cursor) -> ast.Expr | None:
    with cursor.body(query):
        return where(cursor)


def _target(cursor: Cursor) -> tuple[str, str | None]:
    """The table that is changed, and its alias."""
    table = cursor.name("a table")
    if cursor.accept("AS") or (cursor.at_name() and not cursor.at("SET")):
        return table, cursor.name("an alias")
    return table, None


WRITES: dict[str, Callable[[Cursor, Place], Write]] = {"INSERT": _insert, "UPDATE": _update, "DELETE": _delete}
