"""Compiled expressions against the same expressions on columns."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.expression import Column, Expression, rewrite
from millstream.algebra.program.expression import Argument
from millstream.algebra.program.program import Program
from millstream.algebra.program.query import Query
from millstream.algebra.program.statement import RETURN, Insert
from millstream.algebra.schema import TS, Attribute
from millstream.algebra.types import Type
from millstream.errors import OutOfRange
from millstream.runtime.expression.evaluate import predicate, to_polars
from millstream.runtime.program.compile import compiled
from tests.reference.overflow import row_fails
from tests.runtime.expression import test_evaluate as plain
from tests.runtime.expression import test_overflow as large
from tests.tries import tries


def in_program(e: Expression) -> Expression:
    """The expression over arguments, as a body has it."""
    return rewrite(e, lambda node: Argument(node.type, node.name) if isinstance(node, Column) else None)


def program(columns: dict[str, Type], items: list[Expression], condition: Expression | None = None) -> Any:
    arguments = tuple(Attribute(name, type_) for name, type_ in columns.items())
    results = tuple(Attribute(f"r{n}", item.type) for n, item in enumerate(items))
    query = Query((), tuple(map(in_program, items)), None if condition is None else in_program(condition))
    return compiled(Program("f", arguments, results, (), (Insert(RETURN, (query,)),), ()))()


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12)
    return bool(a == b) and type(a) is type(b)


def no_hidden_time(e: Expression) -> bool:
    return TS not in e.columns()


SPECIAL = st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 1e308, 5e-324])
ROW = st.fixed_dictionaries(
    {a.name: st.none() | plain.VALUES[a.type] | (SPECIAL if a.type is Type.DOUBLE else st.none()) for a in plain.SCHEMA}
)


@settings(max_examples=tries(400), deadline=None)
@given(
    st.sampled_from(plain.TYPES).flatmap(plain.expressions).filter(no_hidden_time),
    st.lists(ROW, min_size=1, max_size=3),
)
def test_values_agree_with_columns(e: Expression, rows: list[dict[str, Any]]) -> None:
    columns = {a.name: a.type for a in plain.SCHEMA}
    made = program(columns, [e])
    frame = pl.DataFrame(rows, schema={name: type_.polars for name, type_ in columns.items()})
    expected = frame.with_columns(to_polars(e).alias("made"))["made"].to_list()
    try:
        found = [made.initialize(*(row[name] for name in columns))[0][0] for row in rows]
    except OutOfRange:
        return
    assert all(map(same, found, expected)), (str(e), found, expected)


@settings(max_examples=tries(300), deadline=None)
@given(plain.expressions(Type.BOOLEAN).filter(no_hidden_time), st.lists(ROW, min_size=1, max_size=3))
def test_conditions_agree_with_columns(e: Expression, rows: list[dict[str, Any]]) -> None:
    columns = {a.name: a.type for a in plain.SCHEMA}
    made = program(columns, [Column(Type.BIGINT, "n")], e)
    frame = pl.DataFrame(rows, schema={name: type_.polars for name, type_ in columns.items()})
    expected = frame.with_columns(predicate(e).fill_null(False).alias("made"))["made"].to_list()
    try:
        found = [bool(made.initialize(*(row[name] for name in columns))) for row in rows]
    except OutOfRange:
        return
    assert found == expected, str(e)


@settings(max_examples=tries(400), deadline=None)
@given(st.sampled_from(list(large.NUMBERS)).flatmap(large.expressions), large.ROWS | large.SMALL)
def test_a_value_that_does_not_fit_is_found_where_it_is_used(e: Expression, rows: list[dict[str, Any]]) -> None:
    made = program(large.COLUMNS, [e])
    assert [fails(made, row) for row in rows] == [row_fails(None, [e], row) for row in rows], str(e)


@settings(max_examples=tries(300), deadline=None)
@given(large.expressions(Type.BOOLEAN), st.lists(large.expressions(Type.BIGINT), min_size=1, max_size=2), large.ROWS)
def test_a_condition_that_does_not_hold_uses_nothing(
    c: Expression, items: list[Expression], rows: list[dict[str, Any]]
) -> None:
    made = program(large.COLUMNS, items, c)
    assert [fails(made, row) for row in rows] == [row_fails(c, items, row) for row in rows], str(c)


def fails(made: Any, row: dict[str, Any]) -> bool:
    try:
        made.initialize(*(row[name] for name in large.COLUMNS))
    except OutOfRange:
        return True
    return False
