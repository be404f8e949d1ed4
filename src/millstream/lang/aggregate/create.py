"""`CREATE [ALGEBRAIC] [WINDOW] AGGREGATE name (argument type, …) : type { tables; blocks } [IGNORE NULLS]`.

The statement ends at its closing brace. A block has the labels of one event or of several.
"""

from __future__ import annotations

from dataclasses import replace

from millstream.lang import ast
from millstream.lang.aggregate import ast as body
from millstream.lang.aggregate.block import statements
from millstream.lang.cursor import Cursor
from millstream.lang.expressions import type_name
from millstream.lang.tokens import Kind

_EXAMPLE = "CREATE AGGREGATE total(x INT) : INT { TABLE state(s INT); INITIALIZE: { … } ITERATE: { … } }"


def create_aggregate(cursor: Cursor) -> body.CreateAggregate:
    """Parse the statement after CREATE."""
    algebraic = cursor.accept("ALGEBRAIC") is not None
    window = cursor.accept("WINDOW") is not None
    with cursor.like(_EXAMPLE):
        cursor.expect("AGGREGATE")
        unless = cursor.accept("IF", "NOT", "EXISTS") is not None
        name = cursor.new_name("the name of the aggregate")
        arguments = _columns(cursor, "argument")
        cursor.expect_symbol(":")
        results = _results(cursor)
    nulls = _ignore_nulls(cursor)
    with cursor.inside_body():
        tables, blocks = _body(cursor)
    nulls = _ignore_nulls(cursor) or nulls
    found = body.CreateAggregate(name, arguments, results, tuple(tables), tuple(blocks), window, algebraic)
    return replace(found, ignore_nulls=nulls, unless_exists=unless)


def _body(cursor: Cursor) -> tuple[list[body.LocalTable], list[body.Block]]:
    if not cursor.at_symbol("{"):
        cursor.fail("'{'", hint=f"the body of an aggregate stands in braces: {_EXAMPLE}")
    cursor.advance()
    tables = []
    while cursor.at("TABLE"):
        tables.append(_table(cursor))
    blocks: list[body.Block] = []
    while not cursor.at_symbol("}"):
        blocks.append(_block(cursor, {state for block in blocks for state in block.states}))
    cursor.advance()
    return tables, blocks


def _ignore_nulls(cursor: Cursor) -> bool:
    if not cursor.at("IGNORE"):
        return False
    cursor.expect("IGNORE", "NULLS")
    return True


def _columns(cursor: Cursor, what: str) -> tuple[ast.ColumnDefinition, ...]:
    def entry(cursor: Cursor) -> ast.ColumnDefinition:
        token = cursor.token
        name = cursor.name(f"the name of {'an' if what == 'argument' else 'a'} {what}")
        if cursor.token.kind is not Kind.WORD:
            cursor.fail(f"the type of {what} '{name}'")
        return ast.ColumnDefinition(name, type_name(cursor), **token.place)

    return cursor.in_parentheses(entry)


def _results(cursor: Cursor) -> tuple[ast.ColumnDefinition, ...]:
    if cursor.at_symbol("("):
        return _columns(cursor, "column")
    token = cursor.token
    return (ast.ColumnDefinition("", type_name(cursor), **token.place),)


def _table(cursor: Cursor) -> body.LocalTable:
    token = cursor.expect("TABLE")
    with cursor.like("TABLE state(total REAL, n INT);"):
        name = cursor.name("the name of a local table")
        columns = _columns(cursor, "column")
        cursor.expect_symbol(";")
    return body.LocalTable(name, columns, **token.place)


def _block(cursor: Cursor, seen: set[str]) -> body.Block:
    first = cursor.token
    states: list[str] = []
    while not states or not cursor.at_symbol("{"):
        token = cursor.token
        if token.kind is Kind.WORD and cursor.ahead().is_symbol(":") and token.upper not in body.STATES:
            message = f"unknown state block {token.upper}"
            cursor.error("M1012", message, hint=cursor.suggestion(body.STATES))
        if states and token.upper not in body.STATES:
            cursor.fail("'{'", hint=f"the statements of a block stand in braces: {states[-1]}: {{ … }}")
        state = cursor.choice(body.STATES, f"{', '.join(body.STATES)} or '}}'")
        if state in seen or state in states:
            cursor.error("M1007", f"{state} appears twice", token=token)
        states.append(state)
        cursor.expect_symbol(":")
    return body.Block(tuple(states), statements(cursor), **first.place)
