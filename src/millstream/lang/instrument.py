"""`INSTRUMENT(TABLE s, '~[k = 5]', 100)`: the stream, with feedback every 100 tuples, or `ONCE` at its start. A last
argument `PROPAGATE OFF` counts, and sends nothing."""

from __future__ import annotations

from collections.abc import Callable

from millstream.lang import ast
from millstream.lang.cursor import Cursor


def instrument(cursor: Cursor, query: Callable[[Cursor], ast.Query]) -> tuple[str | ast.Query, ast.Instrumenting]:
    """Parse the function; a subquery in parentheses may stand for the stream."""
    cursor.expect("INSTRUMENT")
    with cursor.like("INSTRUMENT(TABLE s, '~[k = 5]', 100)"):
        cursor.expect_symbol("(")
        cursor.accept("TABLE")
        relation: str | ast.Query
        if cursor.accept_symbol("("):
            relation = query(cursor)
            cursor.expect_symbol(")")
        else:
            relation = cursor.name("a stream")
        cursor.expect_symbol(",")
        place, text = cursor.token.place, cursor.string("feedback in quotes")
        cursor.expect_symbol(",")
        every = None if cursor.accept("ONCE") else cursor.integer("a number of tuples, or ONCE")
        sends = True
        if cursor.accept_symbol(","):
            cursor.expect("PROPAGATE")
            sends = cursor.choice(("ON", "OFF"), "ON or OFF") == "ON"
        cursor.expect_symbol(")")
    return relation, ast.Instrumenting(text, every, sends, **place)
