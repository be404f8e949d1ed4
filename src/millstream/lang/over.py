"""The window of a running aggregate: `OVER (PARTITION BY k ORDER BY ts RANGE 10 MINUTES PRECEDING SLIDE 1 MINUTE)`.

| part | written |
|---|---|
| partition | `PARTITION BY` expressions |
| order | `ORDER BY` the time column; it may be left out |
| frame | `ROWS n PRECEDING`, `RANGE d PRECEDING`, `UNBOUNDED PRECEDING` (the default) |
| | `ROWS BETWEEN n PRECEDING AND CURRENT ROW`, the same in the words of SQL |
| rows emitted | one a tuple; `SLIDE`: one a slot; `ACTIVE EXPIRATION`: one a tuple and one an expiry |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from millstream.lang import ast
from millstream.lang.cursor import Cursor
from millstream.lang.durations import duration
from millstream.lang.tokens import Kind

_EXAMPLE = "OVER (PARTITION BY k RANGE 10 MINUTES PRECEDING)"
_DESCENDING = (
    "tuples are taken as time passes. The largest of a window: SELECT k, MAX(v) FROM s [RANGE 1 MINUTE] GROUP BY k; "
    "its last tuple: LAST(v)"
)
_IN_ORDER = "PARTITION BY, ORDER BY, the frame, then SLIDE or ACTIVE EXPIRATION, each once"


def over_clause(cursor: Cursor, expression: Callable[[Cursor], ast.Expr]) -> ast.OverClause:
    start = cursor.expect("OVER")
    if not cursor.at_symbol("("):
        cursor.fail("a window in parentheses", hint=f"{_EXAMPLE}; a window has no name")
    cursor.advance()
    made = ast.OverClause(**start.place)
    with cursor.like(_EXAMPLE):
        if cursor.accept("PARTITION"):
            cursor.expect("BY")
            made = replace(made, partition=cursor.listed(expression))
        if cursor.accept("ORDER"):
            cursor.expect("BY")
            made = replace(made, order=_order(cursor, expression))
        if cursor.at_any("ROWS", "RANGE", "UNBOUNDED"):
            made = _frame(cursor, made)
        elif cursor.at("GROUPS"):
            cursor.not_yet("a frame of GROUPS", hint="use ROWS or RANGE")
        made = _emission(cursor, made)
        if cursor.at_any("PARTITION", "ORDER", "ROWS", "RANGE", "UNBOUNDED"):
            cursor.error("M1001", f"{cursor.token.upper} is not in its place", hint=_IN_ORDER)
        if not cursor.at_symbol(")"):
            cursor.fail("PARTITION BY, ORDER BY, ROWS, RANGE, SLIDE, ACTIVE EXPIRATION or ')'")
    cursor.advance()
    return made


def _order(cursor: Cursor, expression: Callable[[Cursor], ast.Expr]) -> ast.Expr:
    made = expression(cursor)
    if cursor.at("DESC"):
        cursor.not_yet("a running aggregate in descending order", hint=_DESCENDING)
    cursor.accept("ASC")
    return made


def _frame(cursor: Cursor, made: ast.OverClause) -> ast.OverClause:
    unit = "RANGE" if cursor.at("UNBOUNDED") else cursor.advance().upper
    made = replace(made, unit=unit, framed=True)
    between = cursor.accept("BETWEEN") is not None
    if cursor.accept("UNBOUNDED"):
        cursor.expect("PRECEDING")
    elif cursor.accept("CURRENT"):
        cursor.expect("ROW")
        made = (
            replace(made, rows=0)
            if unit == "ROWS"
            else replace(made, range=ast.Duration(Fraction(0), **cursor.previous.place))
        )
    elif unit == "ROWS":
        made = replace(made, rows=cursor.integer("a number of rows"))
        _preceding(cursor)
    else:
        made = replace(made, range=duration(cursor, "a duration"))
        _preceding(cursor)
    if between:
        cursor.expect("AND")
        if not cursor.at("CURRENT"):
            cursor.fail("CURRENT ROW", hint="a frame ends with the tuple itself; later tuples are not known yet")
        cursor.expect("CURRENT", "ROW")
    return made


def _preceding(cursor: Cursor) -> None:
    if cursor.at("FOLLOWING"):
        cursor.not_yet("a frame that ends after the tuple", hint="a frame ends with the tuple itself: n PRECEDING")
    cursor.expect("PRECEDING")


def _emission(cursor: Cursor, made: ast.OverClause) -> ast.OverClause:
    while True:
        token = cursor.token
        if cursor.accept("SLIDE"):
            if made.slide is not None:
                cursor.error("M1007", "SLIDE appears twice in a window", token=token)
            made = replace(made, slide=_slide(cursor, made.unit))
        elif cursor.accept("ACTIVE"):
            cursor.expect("EXPIRATION")
            if made.active:
                cursor.error("M1007", "ACTIVE EXPIRATION appears twice in a window", token=token)
            made = replace(made, active=True)
        else:
            return made


def _slide(cursor: Cursor, unit: str) -> ast.Duration:
    token = cursor.token
    if unit == "RANGE":
        return duration(cursor, "a duration")
    if token.kind is not Kind.NUMBER:
        cursor.fail("a number of rows")
    return ast.Duration(Fraction(cursor.integer("a number of rows")), **token.place)
