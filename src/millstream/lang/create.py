"""CREATE STREAM, TABLE, QUERY and AGGREGATE. A stream has columns, then clauses in any order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from millstream.errors import did_you_mean
from millstream.lang import ast
from millstream.lang.aggregate.create import create_aggregate
from millstream.lang.cursor import Cursor
from millstream.lang.durations import duration
from millstream.lang.expressions import type_name
from millstream.lang.options import options
from millstream.lang.query import query, query_into
from millstream.lang.table.ast import CreateView
from millstream.lang.table.function import create_table_function
from millstream.lang.table.write import WRITES, write
from millstream.lang.tokens import Kind, Token

CLAUSES = (
    "ORDER BY",
    "MAX SKEW",
    "WATERMARK FOR",
    "PUNCTUATED ON",
    "PRIMARY KEY",
    "ASCENDING",
    "CLOSES",
    "WITH",
)
KINDS = ("STREAM", "TABLE", "QUERY", "VIEW", "FUNCTION")
CLASSES = ("+", "#", "-")
_FORMS = {
    "STREAM": "CREATE STREAM name (…), or CREATE STREAM name AS SELECT …",
    "TABLE": "CREATE TABLE name (…)",
    "QUERY": "CREATE QUERY name AS SELECT …",
    "VIEW": "CREATE VIEW name AS SELECT …",
}


def create(cursor: Cursor) -> ast.Statement:
    """Parse the rest of a CREATE statement."""
    if cursor.at_any("AGGREGATE", "ALGEBRAIC", "WINDOW"):
        return create_aggregate(cursor)
    if cursor.accept("OR", "REPLACE", "VIEW"):
        return replace(_view(cursor, cursor.new_name("the name of the view")), replaces=True)
    kind = cursor.choice(KINDS, "STREAM, TABLE, QUERY, VIEW, FUNCTION or AGGREGATE")
    unless = cursor.accept("IF", "NOT", "EXISTS") is not None
    named = f"the name of the {kind.lower()}"
    if kind in _FORMS and (cursor.at_symbol("(") or cursor.at_any("AS", "SELECT", "WITH")):
        if cursor.at("WITH") or not cursor.ahead().is_symbol("("):
            cursor.error("M1001", f"{named} is missing", hint=_FORMS[kind])
        cursor.error(
            "M1001", f"expected {named}, found {cursor.token}", hint=f'write "{cursor.token.text}" in double quotes'
        )
    name = cursor.new_name(named)
    return replace(_CREATED[kind](cursor, name), unless_exists=unless)


def _query(cursor: Cursor, name: str) -> ast.CreateQuery:
    start = _start(cursor)
    if cursor.at("INTO"):
        cursor.error("M1001", "INTO must stand after the query", hint="CREATE QUERY q AS SELECT … INTO …")
    cursor.expect("AS")
    first = cursor.token
    runs: ast.Runs
    into: str | None = None
    given: ast.Options = ()
    if cursor.at_any(*WRITES):
        runs = write(cursor)
    else:
        runs, into, given = query_into(cursor)
    return ast.CreateQuery(name, runs, into, given, start, body=cursor.text[first.start : cursor.previous.end])


def _stream(cursor: Cursor, name: str) -> ast.CreateStream | ast.CreateDerivedStream:
    if cursor.at("WITH") or cursor.at("AS"):
        pairs = options(cursor)
        if pairs and not cursor.at("AS"):
            hint = f"CREATE STREAM {name} (ts TIMESTAMP, …) WITH (…)"
            cursor.error("M1001", "a stream with a connector has columns", hint=hint)
        cursor.expect("AS")
        return ast.CreateDerivedStream(name, query(cursor), pairs)
    if not cursor.at_symbol("("):
        cursor.fail("'(' and the columns, or AS SELECT", hint=f"CREATE STREAM {name} (ts TIMESTAMP, …) ORDER BY ts")
    references: list[ast.References] = []
    clauses = _Clauses()
    columns, key = _columns(cursor, references, clauses)
    clauses.found["primary_key"] = key
    while clauses.take(cursor):
        pass
    return ast.CreateStream(name, columns, references=tuple(references), **clauses.found)


def _view(cursor: Cursor, name: str) -> CreateView:
    with cursor.like("CREATE VIEW v AS SELECT … FROM s"):
        cursor.expect("AS")
    return CreateView(name, query(cursor))


def _start(cursor: Cursor) -> ast.Start:
    """Parse the options of a query, if there are any: `WITH (start = 'beginning')`."""
    token = cursor.token
    if not cursor.accept("WITH"):
        return ast.Start(**token.place)
    with cursor.like("WITH (start = 'beginning')"):
        cursor.expect_symbol("(")
        cursor.expect("START")
        cursor.expect_symbol("=")
        token = cursor.token
        if token.kind not in (Kind.STRING, Kind.WORD) or token.text.lower() not in ast.STARTS:
            cursor.fail("'now', 'beginning' or 'shared'", hint=did_you_mean(token.text, ast.STARTS))
        cursor.advance()
        cursor.expect_symbol(")")
    return ast.Start(token.text.lower(), **token.place)


def _table(cursor: Cursor, name: str) -> ast.CreateTable:
    if cursor.at("AS"):
        cursor.not_yet("CREATE TABLE … AS SELECT", hint="CREATE STREAM … AS SELECT creates a derived stream")
    if not cursor.at_symbol("("):
        cursor.fail("'(' and the columns", hint=f"CREATE TABLE {name} (id BIGINT, name VARCHAR)")
    columns, key = _columns(cursor)
    pairs: ast.Options = ()
    while cursor.at("PRIMARY") or cursor.at("WITH"):
        token = cursor.token
        if (pairs and token.upper == "WITH") or (key and token.upper == "PRIMARY"):
            cursor.error("M1007", f"{'WITH' if token.upper == 'WITH' else 'PRIMARY KEY'} appears twice")
        if cursor.at("WITH"):
            pairs = options(cursor)
        else:
            key = _primary_key(cursor)
    if any(cursor.at(*clause.split()) for clause in CLAUSES):
        cursor.fail("PRIMARY KEY or WITH after the columns of a table", hint="the other clauses belong to streams")
    return ast.CreateTable(name, columns, key, pairs)


def _columns(
    cursor: Cursor, references: list[ast.References] | None = None, clauses: _Clauses | None = None
) -> tuple[tuple[ast.ColumnDefinition, ...], tuple[str, ...]]:
    """Parse the columns in parentheses, and the primary key if it is declared among them. Foreign keys are added to
    `references`, and a watermark among the columns to `clauses`; a table has neither."""
    found: list[ast.ColumnDefinition] = []
    key: list[str] = []

    def entry(cursor: Cursor) -> None:
        token = cursor.token
        if cursor.at("PRIMARY", "KEY") and cursor.ahead(2).text == "(":
            _check_first_key(cursor, key)
            key.extend(_primary_key(cursor))
            return
        if references is not None and cursor.at("FOREIGN", "KEY") and cursor.ahead(2).text == "(":
            references.append(_foreign_key(cursor))
            return
        if clauses is not None and cursor.at("WATERMARK", "FOR"):
            clauses.take(cursor)
            return
        name = cursor.name("the name of a column")
        if cursor.token.kind is not Kind.WORD:
            cursor.fail(f"the type of column '{name}'")
        type_ = type_name(cursor)
        required = False
        while True:
            if cursor.accept("NOT", "NULL"):
                required = True
            elif cursor.at("PRIMARY", "KEY"):
                _check_first_key(cursor, [*key, name] if key else [])
                cursor.expect("PRIMARY", "KEY")
                key.append(name)
            elif references is not None and cursor.at("REFERENCES"):
                references.append(_references(cursor, (name,)))
            elif not cursor.accept("NULL"):
                break
        found.append(ast.ColumnDefinition(name, type_, required, **token.place))

    cursor.in_parentheses(entry)
    return tuple(found), tuple(key)


def _foreign_key(cursor: Cursor) -> ast.References:
    cursor.expect("FOREIGN", "KEY")
    with cursor.like("FOREIGN KEY (auction) REFERENCES auctions (id)"):
        return _references(cursor, cursor.names("a column of the key"))


def _references(cursor: Cursor, columns: tuple[str, ...]) -> ast.References:
    with cursor.like("REFERENCES auctions (id)"):
        token = cursor.token
        cursor.expect("REFERENCES")
        stream = cursor.name("the stream that has the primary key")
        key = cursor.names("a column of its primary key") if cursor.at_symbol("(") else ()
        return ast.References(columns, stream, key, **token.place)


def _check_first_key(cursor: Cursor, key: list[str]) -> None:
    """Refuse a second primary key."""
    if key:
        hint = f"a key of several columns: PRIMARY KEY ({', '.join(key)}) after the columns"
        cursor.error("M1007", "PRIMARY KEY appears twice", hint=hint)


def _primary_key(cursor: Cursor) -> tuple[str, ...]:
    cursor.expect("PRIMARY", "KEY")
    with cursor.like("PRIMARY KEY (id)"):
        return cursor.names("a column of the key")


class _Clauses:
    """The clauses of CREATE STREAM parsed so far, by field of the statement."""

    def __init__(self) -> None:
        repeatable = ("primary_key", "punctuated_on", "every", "ascending", "closes", "options", "mentions")
        self.found: dict[str, Any] = dict.fromkeys(repeatable, ())

    def mention(self, name: str, token: Token) -> str:
        """Record the position of a column's name."""
        self.found["mentions"] += (ast.Name((name,), **token.place),)
        return name

    def take(self, cursor: Cursor) -> bool:
        """Parse the next clause; return False if the statement ends."""
        token = cursor.token
        if cursor.accept("ORDER", "BY"):
            self._once(cursor, "order_by", "ORDER BY")
            name = self.mention(cursor.name("a column or current_time"), cursor.previous)
            self.found |= {"current_time": True} if name == "current_time" else {"order_by": name}
            self._skew(cursor)
        elif cursor.at("MAX"):
            self._skew(cursor)
        elif cursor.accept("WATERMARK"):
            self._once(cursor, "watermark", "WATERMARK FOR")
            self.found["watermark"] = watermark = _watermark(cursor)
            self.mention(watermark.name, token)
        elif cursor.accept("PUNCTUATED"):
            cursor.expect("ON")
            self.found["punctuated_on"] += (_template(cursor, self),)
            if cursor.accept("EVERY"):
                self.found["every"] += ((len(self.found["punctuated_on"]) - 1, duration(cursor, "a period")),)
        elif cursor.at("EVERY"):
            cursor.error("M1001", "EVERY stands after PUNCTUATED ON", hint="PUNCTUATED ON (k #) EVERY 1 MINUTE")
        elif cursor.at("PRIMARY"):
            if self.found["primary_key"]:
                cursor.error("M1007", "PRIMARY KEY appears twice")
            for name in _primary_key(cursor):
                self.found["primary_key"] += (self.mention(name, token),)
        elif cursor.accept("ASCENDING"):
            for name in cursor.names("a column that never decreases"):
                self.found["ascending"] += (self.mention(name, token),)
        elif cursor.accept("CLOSES"):
            self.found["closes"] += (_closes(cursor),)
        elif cursor.at("WITH"):
            if self.found["options"]:
                cursor.error("M1007", "WITH appears twice")
            self.found["options"] = options(cursor)
        elif cursor.at("SOURCE"):
            hint = (
                "WITH (connector = 'csv', path = '…') reads files; without it, a program feeds the stream: mill.insert"
            )
            cursor.not_yet(f"SOURCE '{cursor.ahead().text}'", hint=hint)
        elif cursor.at_symbol(";") or token.kind is Kind.END:
            return False
        else:
            hint = cursor.suggestion(clause.split()[0] for clause in CLAUSES)
            cursor.fail(f"one of {', '.join(CLAUSES)}", hint=hint)
        return True

    def _skew(self, cursor: Cursor) -> None:
        if cursor.accept("MAX"):
            self._once(cursor, "max_skew", "MAX SKEW")
            cursor.expect("SKEW")
            self.found["max_skew"] = duration(cursor, "a duration")

    def _once(self, cursor: Cursor, field: str, clause: str) -> None:
        if field in self.found or (field == "order_by" and "current_time" in self.found):
            cursor.error("M1007", f"{clause} appears twice", token=cursor.previous)


def _watermark(cursor: Cursor) -> ast.Watermark:
    token, delay = cursor.previous, None
    with cursor.like("WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"):
        cursor.expect("FOR")
        name = cursor.name("the time column")
        if cursor.accept("AS"):
            again = cursor.token
            if cursor.at("INTERVAL") or cursor.name(f"'{name}'") != name:
                cursor.error("M1011", f"the watermark of '{name}' must be computed from '{name}'", token=again)
            if cursor.accept_symbol("-"):
                delay = duration(cursor, "a delay")
        if cursor.at("INTERVAL") or cursor.token.kind is Kind.NUMBER:
            cursor.error("M1001", f"expected AS {name} -, found {cursor.token}")
    return ast.Watermark(name, delay, **token.place)


def _closes(cursor: Cursor) -> ast.Closes:
    token = cursor.previous
    with cursor.like("CLOSES bids (auction) BY (id)"):
        stream = cursor.name("the stream that is closed")
        columns = cursor.names("a column of the stream that is closed")
        cursor.expect("BY")
        closing = cursor.name("this stream") if cursor.at_name() else None
        return ast.Closes(stream, columns, cursor.names("a column of this stream"), closing, **token.place)


def _template(cursor: Cursor, clauses: _Clauses) -> tuple[tuple[str, str], ...]:
    """Parse `(ts +, auction #)`: columns with their class of punctuation."""

    def column(cursor: Cursor) -> tuple[str, str]:
        name = clauses.mention(cursor.name("a column"), cursor.previous)
        if not cursor.at_symbol(*CLASSES):
            hint = "+ for an upper bound, # for single values, - for the rest"
            cursor.fail("+, # or - after the column", hint=hint)
        return name, cursor.advance().text

    return cursor.in_parentheses(column)


_CREATED: dict[str, Callable[[Cursor, str], ast.Created]] = {
    "STREAM": _stream,
    "TABLE": _table,
    "QUERY": _query,
    "VIEW": _view,
    "FUNCTION": create_table_function,
}
