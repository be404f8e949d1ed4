"""The notations of windows: in brackets, as TUMBLE and HOP, and as `OVER (… PRECEDING)` after a stream."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from millstream.errors import did_you_mean
from millstream.lang import ast
from millstream.lang.cursor import Cursor
from millstream.lang.durations import duration
from millstream.lang.tokens import Token

_EXAMPLES = {
    "TUMBLE": "TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECOND)",
    "HOP": "HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)",
}
_ARGUMENTS = {"TUMBLE": ("DATA", "TIMECOL", "SIZE"), "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE")}
"""The names of the arguments, in their order."""
_FORMS = {"DATA": "TABLE s", "TIMECOL": "DESCRIPTOR(ts)"}
_PARTS = ("RANGE", "SLIDE", "ROWS", "NOW", "UNBOUNDED", "ON", "WATTR")


def window(cursor: Cursor) -> ast.WindowClause:
    """`[RANGE 60 SECONDS SLIDE 20 SECONDS]`, `[RANGE=60s, SLIDE=20s, WATTR=ts]`, `[ROWS 10]`, `[NOW]`, `[UNBOUNDED]`"""
    start = cursor.expect_symbol("[")
    made = ast.WindowClause(**start.place)
    seen: list[str] = []
    while True:
        token = cursor.token
        word = cursor.choice(_PARTS, f"one of {', '.join(_PARTS)}")
        part = "ON" if word == "WATTR" else word
        if part in seen:
            cursor.error("M1007", f"{word} appears twice in a window", token=token)
        seen.append(part)
        made = _with_part(cursor, made, part)
        cursor.accept_symbol(",")
        if cursor.accept_symbol("]"):
            _check_parts(cursor, seen, start)
            return made
        if not cursor.token.upper:
            cursor.fail("']'")


def _with_part(cursor: Cursor, made: ast.WindowClause, part: str) -> ast.WindowClause:
    """Add the part whose keyword has been read to the window."""
    if part == "NOW":
        return replace(made, now=True)
    if part == "UNBOUNDED":
        return made
    cursor.accept_symbol("=")
    if part == "ON":
        return replace(made, attribute=cursor.name("the windowing column"))
    if part == "ROWS":
        with cursor.like("[ROWS 10]"):
            made = replace(made, rows=cursor.integer("a number of rows"))
    elif part == "SLIDE":
        made = replace(made, slide=duration(cursor, "a duration"))
    elif not cursor.accept("UNBOUNDED"):
        made = replace(made, range=duration(cursor, "a duration"))
    cursor.accept("PRECEDING")
    return made


def _check_parts(cursor: Cursor, seen: list[str], start: Token) -> None:
    kinds = [part for part in ("RANGE", "ROWS", "NOW", "UNBOUNDED") if part in seen]
    example = "[RANGE 60 SECONDS SLIDE 20 SECONDS]" if "SLIDE" in seen else ""
    if len(kinds) > 1:
        hint = "[RANGE 60 SECONDS] for the last minute, [ROWS 10] for the last ten tuples"
        cursor.error("M1008", f"a window has either {kinds[0]} or {kinds[1]}", token=start, hint=hint)
    if not kinds:
        cursor.error("M1008", "a window needs RANGE, ROWS, NOW or UNBOUNDED", token=start, hint=example)
    if "SLIDE" in seen and kinds != ["RANGE"]:
        cursor.error("M1008", f"SLIDE needs RANGE, not {kinds[0]}", token=start, hint=example)


def window_function(cursor: Cursor) -> tuple[str, ast.WindowClause]:
    """`TUMBLE(TABLE s, DESCRIPTOR(ts), size)` or `HOP(TABLE s, DESCRIPTOR(ts), slide, size)`, also in `TABLE(…)`."""
    wrapped = cursor.accept("TABLE") is not None
    if wrapped:
        cursor.expect_symbol("(")
    token = cursor.token
    if not cursor.at_any("TUMBLE", "HOP"):
        cursor.fail("TUMBLE or HOP")
    cursor.advance()
    with cursor.like(_EXAMPLES[token.upper]), cursor.inside_body():  # here arguments have names
        given = _window_arguments(cursor, token.upper)
    if wrapped:
        cursor.expect_symbol(")")
    made = ast.WindowClause(given["SIZE"], given.get("SLIDE"), **token.place)
    return given["DATA"], replace(made, attribute=given["TIMECOL"], function=token.upper)


def _window_arguments(cursor: Cursor, function: str) -> dict[str, Any]:
    """The stream, the time column and the durations, in their order or by name: `SIZE => INTERVAL '10' SECOND`."""
    order = _ARGUMENTS[function]
    given: dict[str, Any] = {}
    named = False
    cursor.expect_symbol("(")
    while True:
        token, left = cursor.token, [each for each in order if each not in given]
        if cursor.ahead().is_symbol("=>"):
            name, named = token.text.upper(), True
            if name not in order:
                hint = did_you_mean(name, order) or f"the arguments of {function} are {', '.join(order)}"
                cursor.error("M1013", f"{function} has no argument '{token.text}'", hint=hint)
            if name in given:
                cursor.error("M1007", f"{name} appears twice")
            cursor.advance()
            cursor.advance()
        elif not left:
            cursor.error("M1013", f"{function} has {len(order)} arguments", hint=", ".join(order))
        elif named:
            cursor.error("M1013", "an argument without a name after one with a name", hint=f"{left[0]} => …")
        else:
            name = left[0]
        given[name] = _argument(cursor, name, named)
        missing = [each for each in order if each not in given]
        if not missing and not cursor.at_symbol(","):
            cursor.expect_symbol(")")
            return given
        if named and cursor.at_symbol(")"):
            cursor.error(
                "M1013", f"{function} lacks {missing[0]}", hint=f"{missing[0]} => {_FORMS.get(missing[0], '…')}"
            )
        cursor.expect_symbol(",")


def _argument(cursor: Cursor, name: str, named: bool) -> Any:
    if name == "DATA":
        cursor.accept("TABLE")
        return cursor.name("a stream")
    if name == "TIMECOL":
        if named and not cursor.at("DESCRIPTOR"):
            cursor.fail("DESCRIPTOR", hint=f"TIMECOL => {_FORMS['TIMECOL']}")
        cursor.expect("DESCRIPTOR")
        cursor.expect_symbol("(")
        attribute = cursor.name("the time column")
        cursor.expect_symbol(")")
        return attribute
    return duration(cursor, "the size of the window" if name == "SIZE" else "a duration")


def preceding_window(cursor: Cursor) -> ast.WindowClause:
    """`OVER (RANGE d PRECEDING)`, `OVER (ROWS n PRECEDING)`, `OVER (UNLIMITED PRECEDING)`, optionally `KEY JOIN`."""
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
    return replace(made, key_join=cursor.accept("KEY", "JOIN") is not None)
