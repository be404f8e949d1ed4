"""Queries: SELECT with its clauses, FROM with windows in brackets, UNION ALL.

WHERE, WINDOW and GROUP BY may come in any order, as NiagaraST writes them.
"""

from __future__ import annotations

from millstream.lang import ast
from millstream.lang.cursor import RESERVED, Cursor
from millstream.lang.expressions import expression, expressions
from millstream.lang.tokens import Kind
from millstream.lang.windows import preceding_window, window, window_function

_CLAUSES = ("WHERE", "WINDOW", "GROUP", "HAVING")
_JOINS = ("JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "NATURAL")


def query(cursor: Cursor) -> ast.Query:
    """A SELECT, or several put together by UNION ALL."""
    with cursor.nested():
        made: ast.Query = _member(cursor)
        while cursor.at_any("UNION", "INTERSECT", "EXCEPT", "MINUS"):
            token = cursor.advance()
            op = "EXCEPT" if token.upper == "MINUS" else token.upper
            if cursor.accept("ALL"):
                op += " ALL"
            else:
                cursor.accept("DISTINCT")
            with cursor.nested():
                right = _member(cursor)
            made = ast.SetOperation(op, made, right, **token.place)
        tail = _tail(cursor)
        if not tail:
            return made
        if isinstance(made, ast.Select):
            return _with_tail(made, tail)
        return ast.SetOperation(made.op, made.left, made.right, tail, line=made.line, column=made.column)


def _with_tail(made: ast.Select, tail: tuple[ast.Unordered, ...]) -> ast.Select:
    parts = (made.items, made.sources, made.where, made.window, made.group, made.having, made.distinct)
    return ast.Select(*parts, tail, line=made.line, column=made.column)


def _member(cursor: Cursor) -> ast.Query:
    if cursor.at_symbol("("):
        cursor.advance()
        made = query(cursor)
        cursor.expect_symbol(")")
        return made
    return _select(cursor)


def _select(cursor: Cursor) -> ast.Select:
    token = cursor.expect("SELECT")
    distinct = cursor.accept("DISTINCT") is not None
    if not distinct:
        cursor.accept("ALL")
    items = [_item(cursor)]
    while cursor.accept_symbol(","):
        items.append(_item(cursor))
    if not cursor.at("FROM"):
        cursor.fail("',' or FROM" if cursor.token.kind is not Kind.END else "FROM and a stream")
    cursor.advance()
    sources = _sources(cursor)
    found: dict[str, object] = {}
    while cursor.at_any(*_CLAUSES):
        clause = cursor.token
        if clause.upper in found:
            cursor.error("M1007", f"{clause.upper} stands twice")
        found[clause.upper] = _clause(cursor)
    return ast.Select(
        tuple(items),
        sources,
        found.get("WHERE"),  # type: ignore[arg-type]
        found.get("WINDOW"),  # type: ignore[arg-type]
        found.get("GROUP", ()),  # type: ignore[arg-type]
        found.get("HAVING"),  # type: ignore[arg-type]
        distinct,
        **token.place,
    )


def _clause(cursor: Cursor) -> object:
    match cursor.advance().upper:
        case "WINDOW":
            return window(cursor)
        case "GROUP":
            cursor.expect("BY")
            if cursor.at_any("ROLLUP", "CUBE", "GROUPING") and cursor.ahead().text in ("(", "SETS", "sets"):
                cursor.not_yet(f"GROUP BY {cursor.token.upper}")
            return expressions(cursor)
    return expression(cursor)


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
        cursor.fail("a column or an expression", hint="SELECT * FROM …")
    made = expression(cursor)
    return ast.SelectItem(made, _alias(cursor), **here)


def _alias(cursor: Cursor) -> str | None:
    if cursor.accept("AS"):
        return cursor.name("an alias")
    if cursor.token.kind is Kind.QUOTED or (cursor.at_name() and not cursor.at("CASE")):
        return cursor.name("an alias")
    return None


def _sources(cursor: Cursor) -> tuple[ast.JoinedSource, ...]:
    token = cursor.token
    found = [ast.JoinedSource(_source(cursor), **token.place)]
    while True:
        token = cursor.token
        here = token.place
        if cursor.accept_symbol(","):
            found.append(ast.JoinedSource(_source(cursor), "CROSS", **here))
        elif cursor.at_any(*_JOINS):
            found.append(_join(cursor))
        else:
            return tuple(found)


def _join(cursor: Cursor) -> ast.JoinedSource:
    token = cursor.token
    if cursor.at("NATURAL"):
        cursor.not_yet("NATURAL JOIN", hint="JOIN … USING (column)")
    kind = "INNER" if cursor.at("JOIN") else cursor.advance().upper
    if kind in ("LEFT", "RIGHT", "FULL"):
        cursor.accept("OUTER")
    cursor.expect("JOIN")
    source = _source(cursor)
    on: ast.Expr | None = None
    using: tuple[str, ...] = ()
    if cursor.accept("ON"):
        on = expression(cursor)
    elif cursor.accept("USING"):
        using = names(cursor, "a column")
    elif kind != "CROSS":
        cursor.fail("ON or USING", hint="CROSS JOIN needs neither")
    return ast.JoinedSource(source, kind, on, using, **token.place)


def names(cursor: Cursor, what: str) -> tuple[str, ...]:
    """Names in parentheses."""
    cursor.expect_symbol("(")
    found = [cursor.name(what)]
    while cursor.accept_symbol(","):
        found.append(cursor.name(what))
    cursor.expect_symbol(")")
    return tuple(found)


def _source(cursor: Cursor) -> ast.Source:
    """A relation, its alias and its window; the alias may stand before or after the window."""
    token = cursor.token
    relation: str | ast.Query
    bracket: ast.WindowClause | None = None
    probing = False
    if cursor.at_symbol("("):
        cursor.advance()
        if not (cursor.at("SELECT") or cursor.at_symbol("(")):
            cursor.fail("SELECT")
        relation = query(cursor)
        cursor.expect_symbol(")")
    elif cursor.ahead().text == "(" and cursor.at_any("TABLE", "TUMBLE", "HOP"):
        relation, bracket = window_function(cursor)
    else:
        relation = cursor.name("a stream")
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
        cursor.not_yet("MATCH_RECOGNIZE")
    return ast.Source(relation, alias, bracket, probing, **token.place)


def _source_alias(cursor: Cursor) -> str | None:
    if cursor.accept("AS"):
        return cursor.name("an alias")
    if cursor.at("MATCH_RECOGNIZE") or cursor.token.upper in RESERVED:
        return None
    return cursor.name("an alias") if cursor.at_name() else None


def _tail(cursor: Cursor) -> tuple[ast.Unordered, ...]:
    found = []
    while cursor.at_any("ORDER", "LIMIT", "OFFSET"):
        token = cursor.advance()
        if token.upper == "ORDER":
            cursor.expect("BY")
            while True:
                expression(cursor)
                _ = cursor.accept("ASC") or cursor.accept("DESC")
                if not cursor.accept_symbol(","):
                    break
        else:
            expression(cursor)
        clause = "ORDER BY" if token.upper == "ORDER" else token.upper
        found.append(ast.Unordered(clause, **token.place))
    return tuple(found)
