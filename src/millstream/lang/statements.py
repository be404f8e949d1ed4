"""Statements other than queries: CREATE, DROP, EXPLAIN, SHOW, SET."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from millstream.errors import SqlSyntaxError
from millstream.lang import ast
from millstream.lang.aggregate.ast import CreateAggregate
from millstream.lang.create import KINDS, create
from millstream.lang.cursor import Cursor
from millstream.lang.emit import emit
from millstream.lang.feedback import feedback
from millstream.lang.query import query_into
from millstream.lang.table.ast import WriteStatement
from millstream.lang.table.write import WRITES, write
from millstream.lang.tokens import Kind

STAGES = ("LOGICAL", "OPTIMIZED", "PHYSICAL", "CONTRACT", "FEEDBACK")
SHOWN = ("STREAMS", "TABLES", "QUERIES", "FUNCTIONS", "AGGREGATES")
DROPPED = (*KINDS, "FUNCTION", "AGGREGATE")
MAXIMUM_HEIGHT = 120
_AFTER = ("WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "UNION", "INTO", "JOIN", "LEFT", "RIGHT")
"""The keywords that a misspelt word after a query may stand for."""
STARTS = ("CREATE", "SELECT", "INSERT", "UPDATE", "DELETE", "DROP", "EXPLAIN", "SHOW", "SET", "FEEDBACK", "ALTER")


def script(cursor: Cursor) -> list[ast.Statement]:
    """Parse all statements of a text, separated by semicolons."""
    found: list[ast.Statement] = []
    while True:
        while cursor.accept_symbol(";"):
            pass
        if cursor.ended:
            return found
        found.append(statement(cursor))
        # a body in braces needs no semicolon after it
        if not cursor.at_symbol(";") and not cursor.ended and not isinstance(found[-1], CreateAggregate):
            cursor.fail("';' or the end of the statement", keywords=_AFTER)


def statement(cursor: Cursor) -> ast.Statement:
    """Parse one statement; its `text` is the part of the text that it occupies."""
    start = cursor.token
    found: ast.Statement
    if cursor.at("SELECT") or cursor.at_symbol("("):
        found = ast.SelectStatement(*query_into(cursor))
    elif start.upper in WRITES:
        found = WriteStatement(write(cursor))
    elif start.upper in _PARSERS:
        cursor.advance()
        found = _PARSERS[start.upper](cursor)
    elif start.upper in _NOT_YET:
        cursor.not_yet(f"{start.upper} statements", hint=_NOT_YET[start.upper])
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
    kind = cursor.choice(DROPPED, "STREAM, TABLE, QUERY, VIEW, FUNCTION or AGGREGATE")
    if_exists = cursor.accept("IF", "EXISTS") is not None
    return ast.Drop(kind, cursor.name(f"the name of a {kind.lower()}"), if_exists)


def _explain(cursor: Cursor) -> ast.Statement:
    stage = cursor.advance().upper if cursor.at_any(*STAGES) else "OPTIMIZED"
    if not (cursor.at_any("SELECT", "CREATE", *WRITES) or cursor.at_symbol("(")):
        if stage == "CONTRACT":
            return ast.ExplainNamed(cursor.name("a query (SELECT …) or the name of one"))
        alone = cursor.ahead().kind is Kind.END or cursor.ahead().text == ";"
        if cursor.at_name() and alone and stage != "LOGICAL":
            return ast.ExplainNamed(cursor.name("the name of a query"), stage)
        hint = cursor.suggestion([*STAGES, "SELECT"])
        cursor.fail("a query (SELECT …) or LOGICAL, OPTIMIZED, PHYSICAL, CONTRACT, FEEDBACK", hint=hint)
    token = cursor.token
    inner = statement(cursor)
    if not isinstance(inner, ast.SelectStatement | ast.CreateQuery | ast.CreateDerivedStream):
        cursor.error("M1009", "only a query can be explained", token=token)
    return ast.Explain(stage, inner)


def _show(cursor: Cursor) -> ast.Statement:
    return ast.Show(cursor.choice(SHOWN, "STREAMS, TABLES, QUERIES, FUNCTIONS or AGGREGATES"))


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


def _alter(cursor: Cursor) -> ast.Statement:
    if not cursor.accept("QUERY"):
        cursor.not_yet("ALTER statements", token=cursor.previous, hint="DROP it, then CREATE it again")
    name = cursor.name("the name of a query")
    with cursor.like("ALTER QUERY q EMIT EARLY AT 60 %"):
        if not cursor.at("EMIT", "EARLY"):
            cursor.fail("EMIT EARLY")
        return ast.AlterQuery(name, emit(cursor))


_NOT_YET = {
    "EVENT": "SEQ(a, b) MODE RECENT pairs two streams",
    "PROD": "",
}
"""Statements that are not available, and hints."""

_PARSERS: dict[str, Callable[[Cursor], ast.Statement]] = {
    "CREATE": create,
    "DROP": _drop,
    "EXPLAIN": _explain,
    "SHOW": _show,
    "SET": _set,
    "FEEDBACK": feedback,
    "ALTER": _alter,
}
