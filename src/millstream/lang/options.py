"""`WITH (name = 'value', …)`."""

from __future__ import annotations

from millstream.lang import ast
from millstream.lang.cursor import RESERVED, Cursor
from millstream.lang.tokens import Kind


def options(cursor: Cursor) -> ast.Options:
    """Parse a WITH clause, if there is one, to pairs of a lower-case name and a text."""
    if not cursor.accept("WITH"):
        return ()
    cursor.expect_symbol("(")
    found: dict[str, str] = {}
    while not cursor.accept_symbol(")"):
        if found:
            cursor.expect_symbol(",")
        token = cursor.token
        name = _option_name(cursor)
        if name in found:
            cursor.error("M1007", f"option '{name}' appears twice", token=token)
        with cursor.like(f"WITH ({name} = 'value')"):
            cursor.expect_symbol("=")
        sign = "-" if cursor.accept_symbol("-") else ""
        if cursor.at("NULL") and name != "null":
            cursor.fail("a value", hint=f"leave {name} out, if it has none")
        if cursor.token.kind not in (Kind.STRING, Kind.NUMBER, Kind.WORD) or (
            sign and cursor.token.kind is not Kind.NUMBER
        ):
            quoted = cursor.token.kind is Kind.QUOTED
            hint = f"text is written in single quotes: '{cursor.token.text}'" if quoted else ""
            cursor.fail("a value", hint=hint)
        found[name] = sign + cursor.advance().text
    return tuple(found.items())


def _option_name(cursor: Cursor) -> str:
    """Parse the name of an option; a keyword such as NULL is one too."""
    if cursor.token.kind is Kind.STRING or (cursor.token.upper in RESERVED and cursor.ahead().is_symbol("=")):
        return cursor.advance().text.lower()
    name = cursor.name("the name of an option")
    while cursor.accept_symbol("."):
        name += "." + cursor.name("the name of an option")
    return name
