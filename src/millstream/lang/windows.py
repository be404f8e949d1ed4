"""Windows as written: in brackets, as TUMBLE and HOP, and as `OVER (… PRECEDING)` after a stream."""

from __future__ import annotations

from millstream.lang import ast
from millstream.lang.cursor import Cursor
from millstream.lang.durations import duration
from millstream.lang.tokens import Token

_PARTS = ("RANGE", "SLIDE", "ROWS", "NOW", "UNBOUNDED", "ON", "WATTR")


def window(cursor: Cursor) -> ast.WindowClause:
    """`[RANGE 60 SECONDS SLIDE 20 SECONDS]`, `[RANGE=60s, SLIDE=20s, WATTR=ts]`, `[ROWS 10]`, `[NOW]`, …"""
    start = cursor.expect_symbol("[")
    parts: dict[str, object] = {}
    while True:
        token = cursor.token
        word = token.upper
        if word not in _PARTS:
            cursor.fail(f"one of {', '.join(_PARTS)}", hint=cursor.suggestion(_PARTS))
        cursor.advance()
        key = "ON" if word == "WATTR" else word
        if key in parts:
            cursor.error("M1007", f"{word} stands twice in a window", token=token)
        parts[key] = _part(cursor, key)
        cursor.accept_symbol(",")
        if cursor.accept_symbol("]"):
            return _checked(cursor, parts, start)
        if not cursor.token.upper:
            cursor.fail("']'")


def _part(cursor: Cursor, key: str) -> object:
    if key in ("NOW", "UNBOUNDED"):
        return True
    cursor.accept_symbol("=")
    if key == "ON":
        return cursor.name("the windowing column")
    if key == "ROWS":
        made: object = cursor.integer("a number of rows")
    elif key == "RANGE" and cursor.accept("UNBOUNDED"):
        made = None
    else:
        made = duration(cursor, "a duration")
    cursor.accept("PRECEDING")
    return made


def _checked(cursor: Cursor, parts: dict[str, object], start: Token) -> ast.WindowClause:
    kinds = [key for key in ("RANGE", "ROWS", "NOW", "UNBOUNDED") if key in parts]
    if len(kinds) > 1:
        cursor.error("M1008", f"a window has either {kinds[0]} or {kinds[1]}", token=start)
    if not kinds:
        hint = "[RANGE 60 SECONDS SLIDE 20 SECONDS]" if "SLIDE" in parts else ""
        cursor.error("M1008", "a window needs RANGE, ROWS, NOW or UNBOUNDED", token=start, hint=hint)
    if "SLIDE" in parts and kinds != ["RANGE"]:
        hint = "[RANGE 60 SECONDS SLIDE 20 SECONDS]"
        cursor.error("M1008", f"SLIDE goes with RANGE, not with {kinds[0]}", token=start, hint=hint)
    return ast.WindowClause(
        parts.get("RANGE"),  # type: ignore[arg-type]
        parts.get("SLIDE"),  # type: ignore[arg-type]
        parts.get("ROWS"),  # type: ignore[arg-type]
        "NOW" in parts,
        parts.get("ON"),  # type: ignore[arg-type]
        **start.place,
    )


def window_function(cursor: Cursor) -> tuple[str, ast.WindowClause]:
    """`TUMBLE(TABLE s, DESCRIPTOR(ts), size)` or `HOP(TABLE s, DESCRIPTOR(ts), slide, size)`, perhaps in `TABLE(…)`."""
    wrapped = cursor.accept("TABLE") is not None
    if wrapped:
        cursor.expect_symbol("(")
    token = cursor.token
    if not cursor.at_any("TUMBLE", "HOP"):
        cursor.fail("TUMBLE or HOP")
    cursor.advance()
    cursor.expect_symbol("(")
    if cursor.at("TABLE"):
        cursor.advance()
    relation = cursor.name("a stream")
    cursor.expect_symbol(",")
    cursor.expect("DESCRIPTOR")
    cursor.expect_symbol("(")
    attribute = cursor.name("the time column")
    cursor.expect_symbol(")")
    cursor.expect_symbol(",")
    first = duration(cursor, "a duration")
    second = None
    if token.upper == "HOP":
        cursor.expect_symbol(",")
        second = duration(cursor, "the size of the window")
    cursor.expect_symbol(")")
    if wrapped:
        cursor.expect_symbol(")")
    size, slide = (first, None) if second is None else (second, first)
    return relation, ast.WindowClause(size, slide, attribute=attribute, function=token.upper, **token.place)


def preceding_window(cursor: Cursor) -> ast.WindowClause:
    """`OVER (RANGE d PRECEDING)`, `OVER (ROWS n PRECEDING)`, `OVER (UNLIMITED PRECEDING)`, then perhaps `KEY JOIN`."""
    start = cursor.expect("OVER")
    cursor.expect_symbol("(")
    here = start.place
    if cursor.accept("RANGE"):
        made = ast.WindowClause(duration(cursor, "a duration"), **here)
    elif cursor.accept("ROWS"):
        made = ast.WindowClause(rows=cursor.integer("a number of rows"), **here)
    elif cursor.accept("UNLIMITED") or cursor.accept("UNBOUNDED"):
        made = ast.WindowClause(**here)
    else:
        cursor.fail("RANGE, ROWS or UNLIMITED")
    cursor.expect("PRECEDING")
    cursor.expect_symbol(")")
    cursor.accept("KEY", "JOIN")
    return made
