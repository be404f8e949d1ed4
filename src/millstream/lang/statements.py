"""Statements other than queries: CREATE, DROP, EXPLAIN, SHOW, SET."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from millstream.errors import SqlSyntaxError
from millstream.lang import ast
from millstream.lang.create import KINDS, create
from millstream.lang.cursor import Cursor
from millstream.lang.query import query_into
from millstream.lang.tokens import Kind

STAGES = ("LOGICAL", "OPTIMIZED", "PHYSICAL", "CONTRACT")
SHOWN = ("STREAMS", "TABLES", "QUERIES")
MAXIMUM_HEIGHT = 120
STARTS = ("CREATE", "SELECT", "DROP", "EXPLAIN", "SHOW", "SET")


def script(cursor: Cursor) -> list[ast.Statement]:
    """Parse all statements of a text, separated by semicolons."""
    found: list[ast.Statement] = []
    while True:
        while cursor.accept_symbol(";"):
            pass
        if cursor.ended:
            return found
        found.append(statement(cursor))
        if not cursor.at_symbol(";") and not cursor.ended:
            cursor.fail("';' or the end of the statement")


def statement(cursor: Cursor) -> ast.Statement:
    """Parse one statement; its `text` is the part of the text that it occupies."""
    start = cursor.token
    found: ast.Statement
    if cursor.at("SELECT") or cursor.at_symbol("("):
        found = ast.SelectStatement(*query_into(cursor))
    elif start.upper in _PARSERS:
        cursor.advance()
        found = _PARSERS[start.upper](cursor)
    elif start.upper in ("EVENT", "ALTER", "INSERT", "PROD", "FEEDBACK"):
        cursor.not_yet(f"{start.upper} statements")
    else:
        cursor.fail(f"a statement ({', '.join(STARTS)})", hint=cursor.suggestion(STARTS))
    _check_height(found)
    text = cursor.text[start.start : cursor.previous.end]
    return replace(found, text=text, **start.place)


def _check_height(root: ast.Node) -> None:
    """Refuse a tree that is too high to walk on the stack; a chain of operators grows to the left."""
    level: list[ast.Node] = [root]
    for _ in range(MAXIMUM_HEIGHT):
        level = [child for node in level for child in node.children()]
        if not level:
            return
    hint = "put some of it into a subquery, or use IN"
    message = f"an expression of more than {MAXIMUM_HEIGHT} levels"
    raise SqlSyntaxError("M1005", message, hint=hint, **level[0].place)


def _drop(cursor: Cursor) -> ast.Statement:
    kind = cursor.choice(KINDS, "STREAM, TABLE or QUERY")
    if_exists = cursor.accept("IF", "EXISTS") is not None
    return ast.Drop(kind, cursor.name(f"the name of a {kind.lower()}"), if_exists)


def _explain(cursor: Cursor) -> ast.Statement:
    stage = cursor.advance().upper if cursor.at_any(*STAGES) else "OPTIMIZED"
    if not (cursor.at_any("SELECT", "CREATE") or cursor.at_symbol("(")):
        if stage == "CONTRACT":
            return ast.ExplainNamed(cursor.name("a query (SELECT …) or the name of one"))
        hint = cursor.suggestion([*STAGES, "SELECT"])
        cursor.fail("a query (SELECT …) or LOGICAL, OPTIMIZED, PHYSICAL, CONTRACT", hint=hint)
    token = cursor.token
    inner = statement(cursor)
    if not isinstance(inner, ast.SelectStatement | ast.CreateQuery | ast.CreateDerivedStream):
        cursor.error("M1009", "only a query can be explained", token=token)
    return ast.Explain(stage, inner)


def _show(cursor: Cursor) -> ast.Statement:
    return ast.Show(cursor.choice(SHOWN, "STREAMS, TABLES or QUERIES"))


def _set(cursor: Cursor) -> ast.Statement:
    with cursor.like("SET purge_threshold = 10"):
        name = cursor.name("the name of an option")
        while cursor.accept_symbol("."):
            name += "." + cursor.name("the name of an option")
        if not (cursor.accept_symbol("=") or cursor.accept("TO")):
            cursor.fail("'='")
        return ast.SetOption(name, _value(cursor))


def _value(cursor: Cursor) -> int | float | str | bool:
    sign = -1 if cursor.accept_symbol("-") else 1
    token = cursor.token
    if token.kind is Kind.NUMBER:
        cursor.advance()
        return sign * int(token.text) if token.text.isdigit() and len(token.text) < 19 else sign * float(token.text)
    if sign < 0 or token.kind not in (Kind.WORD, Kind.STRING, Kind.QUOTED):
        cursor.fail("a value")
    cursor.advance()
    return {"TRUE": True, "FALSE": False}.get(token.upper, token.text)


_PARSERS: dict[str, Callable[[Cursor], ast.Statement]] = {
    "CREATE": create,
    "DROP": _drop,
    "EXPLAIN": _explain,
    "SHOW": _show,
    "SET": _set,
}
