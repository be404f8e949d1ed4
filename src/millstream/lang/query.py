"""Queries: SELECT with its clauses, FROM with windows in brackets, UNION ALL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from millstream.lang import ast
from millstream.lang.clauses import next_clause
from millstream.lang.cursor import RESERVED, Cursor
from millstream.lang.durations import duration
from millstream.lang.emit import at_emit, emit
from millstream.lang.expressions import at_over, expression, expressions, with_over
from millstream.lang.foreign import is_function
from millstream.lang.instrument import instrument
from millstream.lang.options import options
from millstream.lang.pacing import pacing
from millstream.lang.tokens import Kind, not_a_number, touching
from millstream.lang.windows import preceding_window, window, window_function

_JOINS = ("JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "NATURAL")
_ISSUING = ("THRIFTY", "IMPATIENT")
"""Words before JOIN: the join sends feedback."""
DENOISING = ("EAGER", "LAZY", "UNORDERED")
_NO_ALIAS = ("ANTI", "SEMI", "ASOF", "TEMPORAL", "LOOKUP", "GLOBAL", "ANY", "INTERVAL")
"""Words before JOIN that other dialects have, and which would otherwise be read as aliases."""


def query_into(cursor: Cursor) -> tuple[ast.Query, str | None, ast.Options]:
    """Parse a query, and the sink and its options if INTO follows."""
    found = query(cursor)
    return (found, cursor.name("a sink"), options(cursor)) if cursor.accept("INTO") else (found, None, ())


def query(cursor: Cursor) -> ast.Query:
    """Parse a SELECT, or several combined by UNION ALL."""
    with cursor.nested(), cursor.subqueries(query):
        made: ast.Query = _member(cursor)
        while cursor.at_any("UNION", "INTERSECT", "EXCEPT"):
            token = cursor.advance()
            op = f"{token.upper} ALL" if cursor.accept("ALL") else token.upper
            cursor.accept("DISTINCT")
            with cursor.nested():
                right = _member(cursor)
            made = ast.SetOperation(op, made, right, **token.place)
        tail = _tail(cursor)
        if tail and cursor.at_any("UNION", "INTERSECT", "EXCEPT"):
            hint = f"in parentheses it belongs to one SELECT: (SELECT … {tail[-1].clause} …) {cursor.token.upper} …"
            cursor.error("M1001", f"{tail[-1].clause} must stand behind {cursor.token.upper}", hint=hint)
        return replace(made, tail=(*made.tail, *tail)) if tail else made


def _member(cursor: Cursor) -> ast.Query:
    if not cursor.accept_symbol("("):
        return _select(cursor)
    inner = query(cursor)
    cursor.expect_symbol(")")
    return inner


def _select(cursor: Cursor) -> ast.Select:
    token = cursor.expect("SELECT")
    after = cursor.ahead()
    if cursor.at("STREAM") and (after.is_symbol("*") or (after.kind is Kind.WORD and after.upper not in RESERVED)):
        cursor.fail("a column or an expression")
    distinct = cursor.accept("DISTINCT") is not None
    if not distinct:
        cursor.accept("ALL")
    items = cursor.listed(_item)
    sources: tuple[ast.JoinedSource, ...] = ()
    if cursor.accept("FROM"):
        sources = _sources(cursor)
    elif not cursor.in_body:
        ended = cursor.token.kind is Kind.END
        hint = "every query reads a stream: SELECT … FROM s" if ended or next_clause(cursor, ()) else ""
        after = cursor.ahead()
        if cursor.previous.is_symbol("*") and cursor.at_name() and not (after.is_symbol(",") or after.upper == "FROM"):
            hint = f"is FROM missing before {cursor.token}?"
        cursor.fail("FROM and a stream" if ended else "',' or FROM", hint=hint, keywords=("FROM",))
    found: dict[str, Any] = {}
    while (clause := next_clause(cursor, found)) is not None and clause in _CLAUSES:
        cursor.advance()
        found[clause] = _CLAUSES[clause](cursor)
    clauses = {clause.partition(" ")[0].lower(): value for clause, value in found.items()}
    return ast.Select(items, sources, distinct=distinct, **clauses, **token.place)


def _group(cursor: Cursor) -> tuple[ast.Expr, ...]:
    cursor.expect("BY")
    if cursor.at_any("ROLLUP", "CUBE", "GROUPING") and cursor.ahead().text.upper() in ("(", "SETS"):
        cursor.not_yet(f"GROUP BY {cursor.token.upper}", hint="a query for each set of columns")
    return expressions(cursor)


_CLAUSES: dict[str, Callable[[Cursor], Any]] = {
    "WHERE": expression,
    "WINDOW": window,
    "GROUP BY": _group,
    "HAVING": expression,
}
"""The clauses after FROM, each at most once; the first word is the name of its field."""


def _item(cursor: Cursor) -> ast.SelectItem:
    token = cursor.token
    here = token.place
    if cursor.accept_symbol("*"):
        return ast.SelectItem(ast.Star(**here), **here)
    dot, star = cursor.ahead(), cursor.ahead(2)
    if cursor.at_name() and dot.text == "." and star.text == "*" and star.kind is Kind.SYMBOL:
        qualifier = cursor.name("an alias")
        cursor.advance()
        cursor.advance()
        return ast.SelectItem(ast.Star(qualifier, **here), **here)
    if cursor.at("FROM"):
        comma = cursor.previous.is_symbol(",")
        cursor.fail("a column or an expression", hint="leave the last comma out" if comma else "SELECT * FROM …")
    made = expression(cursor)
    alias = _alias(cursor)
    if alias is not None and isinstance(made, ast.Function) and made.over is None and at_over(cursor):
        made = with_over(cursor, made)
    return ast.SelectItem(made, alias, **here)


def _alias(cursor: Cursor) -> str | None:
    if touching(cursor.previous, cursor.token):
        raise not_a_number(cursor.previous, cursor.token)
    if cursor.accept("AS") or (cursor.at_name() and not cursor.at("CASE")):
        return cursor.name("an alias")
    return None


def _sources(cursor: Cursor) -> tuple[ast.JoinedSource, ...]:
    token = cursor.token
    found = [ast.JoinedSource(source(cursor), **token.place)]
    while True:
        token = cursor.token
        here = token.place
        if cursor.accept_symbol(","):
            found.append(ast.JoinedSource(source(cursor), "CROSS", **here))
        elif cursor.at_any(*_JOINS) or _at_issuing(cursor):
            found.append(_join(cursor))
        else:
            return tuple(found)


def _at_issuing(cursor: Cursor) -> bool:
    return cursor.at_any(*_ISSUING) and cursor.ahead().upper in _JOINS


def _join(cursor: Cursor) -> ast.JoinedSource:
    token = cursor.token
    issues = cursor.advance().upper if _at_issuing(cursor) else ""
    if cursor.at("NATURAL"):
        cursor.not_yet("NATURAL JOIN", hint="JOIN … USING (column)")
    kind = "INNER" if cursor.at("JOIN") else cursor.advance().upper
    if kind in ("LEFT", "RIGHT", "FULL"):
        cursor.accept("OUTER")
    with cursor.like("LEFT JOIN bids b ON a.id = b.auction"):
        cursor.expect("JOIN")
    joined = source(cursor)
    on: ast.Expr | None = None
    using: tuple[str, ...] = ()
    if cursor.accept("ON"):
        on = expression(cursor)
    elif cursor.accept("USING"):
        using = cursor.names("a column")
    elif kind != "CROSS":
        cursor.fail("ON or USING", hint="CROSS JOIN needs neither")
    return ast.JoinedSource(joined, kind, on, using, issues, **token.place)


def source(cursor: Cursor) -> ast.Source:
    """Parse a relation, its alias and its window; the alias may precede or follow the window."""
    token = cursor.token
    relation: str | ast.Query
    bracket: ast.WindowClause | None = None
    denoising: ast.Denoising | None = None
    instrumenting: ast.Instrumenting | None = None
    work: ast.Work | None = None
    arguments: tuple[ast.Expr, ...] | None = None
    probing = False
    if cursor.accept_symbol("("):
        if not (cursor.at("SELECT") or cursor.at_symbol("(")):
            cursor.fail("SELECT")
        relation = query(cursor)
        cursor.expect_symbol(")")
    elif cursor.ahead().text == "(" and cursor.at("DENOISE"):
        relation, denoising = _denoise(cursor)
    elif cursor.ahead().text == "(" and cursor.at("INSTRUMENT"):
        relation, instrumenting = instrument(cursor, query)
    elif cursor.ahead().text == "(" and cursor.at("EXPENSIVE"):
        relation, work = _expensive(cursor)
    elif cursor.ahead().text == "(" and cursor.at_any("TABLE", "TUMBLE", "HOP"):
        relation, bracket = window_function(cursor)
    else:
        relation = cursor.name("a stream")
        arguments = _given(cursor)
    alias = _source_alias(cursor)
    if cursor.at_symbol("["):
        if bracket is not None:
            cursor.error("M1007", "two windows for one stream")
        bracket = window(cursor)
    elif cursor.at("OVER"):
        bracket, probing = preceding_window(cursor), True
    if alias is None:
        alias = _source_alias(cursor)
    if cursor.at("MATCH_RECOGNIZE"):
        cursor.not_yet("MATCH_RECOGNIZE", hint="WHERE SEQ(a, b) finds each a that a b follows")
    return ast.Source(relation, alias, bracket, probing, denoising, work, instrumenting, arguments, **token.place)


def _given(cursor: Cursor) -> tuple[ast.Expr, ...] | None:
    """The arguments of a table function, in parentheses; None if it is not called."""
    if not cursor.at_symbol("(") or is_function(cursor.previous.upper):
        return None
    cursor.advance()
    found = () if cursor.at_symbol(")") else expressions(cursor)
    cursor.expect_symbol(")")
    return found


def _denoise(cursor: Cursor) -> tuple[str | ast.Query, ast.Denoising]:
    """`DENOISE(TABLE s, DESCRIPTOR(k), INTERVAL '1' SECOND, 6, LAZY)`; a subquery may stand for the stream."""
    token = cursor.expect("DENOISE")
    with cursor.like("DENOISE(TABLE s, DESCRIPTOR(k), INTERVAL '1' SECOND, 6)"):
        cursor.expect_symbol("(")
        relation = _argument(cursor)
        cursor.expect_symbol(",")
        cursor.expect("DESCRIPTOR")
        key = cursor.names("a key column")
        cursor.expect_symbol(",")
        length = duration(cursor, "a duration")
        cursor.expect_symbol(",")
        threshold = cursor.integer("a threshold")
        mode = "EAGER"
        if cursor.accept_symbol(","):
            mode = cursor.choice(DENOISING, "EAGER, LAZY or UNORDERED")
        cursor.expect_symbol(")")
    return relation, ast.Denoising(key, length, threshold, mode, **token.place)


def _expensive(cursor: Cursor) -> tuple[str | ast.Query, ast.Work]:
    """`EXPENSIVE(TABLE s, estimate(k, ts) AS v, budget => 1000, guard => FALSE)`; a subquery may stand for the
    stream."""
    token = cursor.expect("EXPENSIVE")
    with cursor.like("EXPENSIVE(TABLE s, estimate(k, ts) AS v, budget => 1000)"):
        cursor.expect_symbol("(")
        relation = _argument(cursor)
        cursor.expect_symbol(",")
        made = expression(cursor)
        cursor.expect("AS")
        name = cursor.name("a column")
        with cursor.inside_body():  # here arguments have names
            options = _work_options(cursor)
    return relation, ast.Work(made, name, **options, **token.place)


def _work_options(cursor: Cursor) -> dict[str, Any]:
    options: dict[str, Any] = {}
    while cursor.accept_symbol(","):
        option = cursor.token
        key = cursor.choice(("BUDGET", "GUARD", "ASIDE", "SHED"), "budget, guard, aside or shed").lower()
        if key in options:
            cursor.error("M1007", f"{key} appears twice", token=option)
        cursor.expect_symbol("=>")
        if key in ("budget", "aside"):
            options[key] = cursor.integer("a number of tuples")
        else:
            options[key] = cursor.choice(("TRUE", "FALSE"), "TRUE or FALSE") == "TRUE"
    if "budget" not in options:
        cursor.fail("', budget => n'")
    cursor.expect_symbol(")")
    return options


def _argument(cursor: Cursor) -> str | ast.Query:
    """The first argument of an operator that is called as a table function: `TABLE s`, or a subquery."""
    cursor.accept("TABLE")
    if not cursor.accept_symbol("("):
        return cursor.name("a stream")
    relation = query(cursor)
    cursor.expect_symbol(")")
    return relation


def _source_alias(cursor: Cursor) -> str | None:
    if cursor.accept("AS"):
        return cursor.name("an alias")
    if cursor.at("MATCH_RECOGNIZE") or cursor.token.upper in RESERVED or _at_issuing(cursor) or at_emit(cursor):
        return None
    if cursor.token.upper in _NO_ALIAS and cursor.ahead().upper in ("JOIN", "LEFT"):
        cursor.fail("an alias or a join")
    if cursor.at("OUTER", "JOIN"):
        cursor.fail("LEFT, RIGHT or FULL before OUTER JOIN", hint="LEFT JOIN keeps every tuple of the left stream")
    return cursor.name("an alias") if cursor.at_name() else None


def _tail(cursor: Cursor) -> tuple[ast.Tail, ...]:
    found: list[ast.Tail] = []
    while (clause := next_clause(cursor, [tail.clause for tail in found])) is not None and clause not in _CLAUSES:
        if clause in ("WITH PACE", "EMIT EARLY"):
            if not cursor.accept("EMIT", "ON", "WINDOW", "CLOSE"):
                found.append(pacing(cursor) if clause == "WITH PACE" else emit(cursor))
            elif at_emit(cursor):
                cursor.error("M1007", "two EMIT clauses for one query")
            continue
        token = cursor.advance()
        if clause == "ORDER BY":
            cursor.expect("BY")
            found.append(ast.Tail(clause, cursor.listed(_sort_key), **token.place))
        else:
            found.append(ast.Tail(clause, amount=expression(cursor), **token.place))
    return tuple(found)


def _sort_key(cursor: Cursor) -> ast.SortKey:
    token, made = cursor.token, expression(cursor)
    descending = cursor.accept("DESC") is not None
    if not descending:
        cursor.accept("ASC")
    nulls_first = cursor.accept("NULLS", "FIRST") is not None
    if not nulls_first:
        cursor.accept("NULLS", "LAST")
    return ast.SortKey(made, descending, nulls_first, **token.place)
