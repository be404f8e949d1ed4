"""`WITH PACE ON MAX(ts) 1 MINUTE`, behind a query: tuples that are more than a minute late are dropped."""

from __future__ import annotations

from millstream.lang import ast
from millstream.lang.cursor import Cursor
from millstream.lang.durations import duration


def at_pacing(cursor: Cursor) -> bool:
    return cursor.at("WITH", "PACE")


def pacing(cursor: Cursor) -> ast.Pacing:
    """Parse the clause, after which `FEEDBACK OFF` keeps its operator from sending feedback."""
    token = cursor.expect("WITH")
    with cursor.like("WITH PACE ON MAX(ts) 1 MINUTE"):
        cursor.expect("PACE", "ON", "MAX")
        columns = cursor.in_parentheses(_column)
        tolerance = duration(cursor, "the lateness that is allowed")
        feedback = True
        if cursor.accept("FEEDBACK"):
            feedback = cursor.choice(("ON", "OFF"), "ON or OFF") == "ON"
    return ast.Pacing("WITH PACE", columns=columns, tolerance=tolerance, feedback=feedback, **token.place)


def _column(cursor: Cursor) -> ast.Name:
    token = cursor.token
    parts = [cursor.name("a column")]
    if cursor.accept_symbol("."):
        parts.append(cursor.name("a column"))
    return ast.Name(tuple(parts), **token.place)
