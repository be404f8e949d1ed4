"""`EMIT EARLY`, behind a query: it gives early answers to prods, and perhaps has prods of its own. `EMIT ON WINDOW
CLOSE` says what queries do without it.

EMIT EARLY
EMIT EARLY AT 80 % | EVERY 10 SECONDS | 2 SECONDS BEFORE END | WITH ACCURACY 95 %   [BY SYSTEM TIME]
EMIT EARLY [AT …] [QUALITY f] [PRODDED BY p]
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from millstream.lang import ast
from millstream.lang.cursor import Cursor
from millstream.lang.durations import duration
from millstream.lang.tokens import Kind


def at_emit(cursor: Cursor) -> bool:
    return cursor.at("EMIT", "EARLY") or cursor.at("PRODDED", "BY") or at_close(cursor)


def at_close(cursor: Cursor) -> bool:
    return cursor.at("EMIT", "ON", "WINDOW", "CLOSE")


def emit(cursor: Cursor) -> ast.Emit:
    """Parse the clause."""
    token, given = cursor.token, dict[str, Any]()
    with cursor.like("EMIT EARLY AT 80 %"):
        if cursor.accept("EMIT", "EARLY"):
            given = schedule(cursor)
            if cursor.accept("QUALITY"):
                given["quality"] = cursor.name("a function")
        if cursor.accept("PRODDED", "BY"):
            given["prodder"] = cursor.name("a stream")
    return ast.Emit("EMIT EARLY", **given, **token.place)


def schedule(cursor: Cursor) -> dict[str, Any]:
    """Parse when a query prods itself: nothing, or one of the four ways."""
    given: dict[str, Any] = {}
    if cursor.accept("AT"):
        given["percent"] = _percent(cursor)
    elif cursor.accept("EVERY"):
        given["every"] = duration(cursor, "a period")
    elif cursor.accept("WITH", "ACCURACY"):
        given["accuracy"] = _percent(cursor)
    elif cursor.token.kind is Kind.NUMBER or cursor.at("INTERVAL") or cursor.at_symbol("-"):
        given["before"] = duration(cursor, "a time before the end of a window")
        cursor.expect("BEFORE", "END")
    if given and cursor.accept("BY", "SYSTEM", "TIME"):
        given["system"] = True
    return given


def _percent(cursor: Cursor) -> Fraction:
    sign = -1 if cursor.accept_symbol("-") else 1
    if cursor.token.kind is not Kind.NUMBER:
        cursor.fail("a percentage", hint="EMIT EARLY AT 80 %")
    amount = Fraction(cursor.advance().text)
    if not cursor.accept("PERCENT"):
        cursor.expect_symbol("%")
    return sign * amount
