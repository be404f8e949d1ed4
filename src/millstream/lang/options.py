"""`WITH (name = 'value', …)`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from millstream.errors import SECRET, BindError, InputError, MillstreamError, SqlSyntaxError
from millstream.lang import ast
from millstream.lang.cursor import RESERVED, Cursor
from millstream.lang.tokens import Kind, Place, Token, tokenize


def options(cursor: Cursor) -> ast.Options:
    """Parse a WITH clause, if there is one, to pairs of a lower-case name and a text."""
    if not cursor.accept("WITH"):
        return ()
    cursor.expect_symbol("(")
    found, name, value = dict[str, str](), "", cursor.token
    while not cursor.accept_symbol(")"):
        if found:
            with _untold(name):
                if not cursor.accept_symbol(","):
                    cursor.fail("',' or ')'", hint=_unquoted(cursor, value))
        token = cursor.token
        name = _option_name(cursor)
        if name in found:
            cursor.error("M1007", f"option '{name}' appears twice", token=token)
        with _untold(name):
            value, found[name] = _value(cursor, name)
    return tuple(found.items())


def _value(cursor: Cursor, name: str) -> tuple[Token, str]:
    with cursor.like(f"WITH ({name} = 'value')"):
        cursor.expect_symbol("=")
    sign = "-" if cursor.accept_symbol("-") else ""
    if cursor.at("NULL") and name != "null":
        cursor.fail("a value", hint=f"leave {name} out, if it has none")
    value = cursor.token
    if value.kind not in (Kind.STRING, Kind.NUMBER, Kind.WORD) or (sign and value.kind is not Kind.NUMBER):
        hint = f"text is written in single quotes: '{value.text}'" if value.kind is Kind.QUOTED else ""
        cursor.fail("a value", hint=hint or _unquoted(cursor, value))
    return value, sign + cursor.advance().text


@contextmanager
def _untold(name: str) -> Iterator[None]:
    """Leave the text of a value that is secret out of an error."""
    try:
        yield
    except SqlSyntaxError as error:
        if not SECRET.search(name):
            raise
        message, hint = (
            error.message.partition(", found")[0],
            "text is written in single quotes, and followed by ',' or ')'",
        )
        raise SqlSyntaxError(error.code, message, hint=hint, line=error.line, column=error.column) from None


def _unquoted(cursor: Cursor, value: Token) -> str:
    """A hint for a value that goes on where it should end, since it is not in quotes."""
    if value.kind is Kind.STRING or cursor.ended or cursor.ahead().is_symbol("=") or value.is_symbol(",", ")"):
        return ""
    text = re.split(r"[,);\n]", cursor.text[value.start :] + ")")[0].strip()
    return f"text is written in single quotes: '{text or value.text}'"


def option_place(statement: ast.Statement, error: MillstreamError) -> Place | None:
    """The position of the option that an error is about: of its name if there is no such option, otherwise of its
    value; of the name in CREATE STREAM that a BindError is about, and of the path of what cannot be read. None if the
    statement does not name it, or if the error has a position within the statement."""
    if error.line is not None and (error.line, error.column) != (statement.line, statement.column):
        return None
    tokens, inside, names = tokenize(statement.text), 0, dict[str, tuple[Token, Token]]()
    for before, token, after in zip(tokens, tokens[1:], [*tokens[2:], tokens[-1]], strict=False):
        if before.upper == "WITH" and token.is_symbol("("):
            inside = 1
        elif inside:
            inside += token.is_symbol("(") - token.is_symbol(")")
        if token.is_symbol("=") and (inside or tokens[0].upper == "SET"):
            names[before.text.lower()] = before, after
        elif before.upper == "INTO" and not inside:
            names.setdefault("sink", (before, token))
    quoted = re.findall(r"'([^']*)'", error.message)
    words = quoted[-1:] if error.code == "M6001" else re.findall(r"[\w]+", error.message.partition(": ")[0])
    found = next((names[word] for word in sorted(words, key="sink".__eq__) if word in names), None)
    if isinstance(error, BindError):
        wanted = quoted[-1 if error.code == "M2001" else 0] if quoted else None
        found = next(((token, token) for token in tokens[2:] if token.text.lower() == wanted), None)
    elif isinstance(error, InputError) and error.code not in ("M5001", "M5002"):
        found = names.get("path")
    if found is None or statement.line is None or statement.column is None:
        return None
    token = found[error.code != "M6001"]
    shift = statement.column - 1 if token.line == 1 else 0
    return {"line": statement.line + token.line - 1, "column": token.column + shift}


def _option_name(cursor: Cursor) -> str:
    """Parse the name of an option; a keyword such as NULL is one too."""
    if cursor.token.kind is Kind.STRING or (cursor.token.upper in RESERVED and cursor.ahead().is_symbol("=")):
        return cursor.advance().text.lower()
    name = cursor.name("the name of an option")
    while cursor.accept_symbol("."):
        name += "." + cursor.name("the name of an option")
    return name
