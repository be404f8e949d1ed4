"""Expressions on whole columns against expressions on one row at a time."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.expression import Binary, Call, Case, Cast, Column, Expression, InList, Literal, Unary
from millstream.algebra.schema import TS, Schema
from millstream.algebra.types import Type
from millstream.errors import BindError
from millstream.runtime.expression.evaluate import predicate, to_polars
from tests.reference.evaluate import evaluate
from tests.tries import tries

B, INT, L, D, V, T, N, DAY = (
    Type.BOOLEAN,
    Type.INT,
    Type.BIGINT,
    Type.DOUBLE,
    Type.VARCHAR,
    Type.TIMESTAMP,
    Type.INTERVAL,
    Type.DATE,
)
SCHEMA = Schema.of(("b", B), ("i", INT), ("n", L), ("d", D), ("s", V), ("t", T), ("w", N), ("day", DAY), time="t")
VALUES: dict[Type, st.SearchStrategy[Any]] = {
    B: st.booleans(),
    INT: st.integers(-9, 9),
    L: st.integers(-9, 9),
    D: st.sampled_from([-2.5, -1.0, 0.0, 0.5, 1.25, 7.0]),
    V: st.text("aB.%_ ", max_size=4),
    T: st.datetimes(datetime(1969, 1, 1), datetime(2030, 1, 1)),
    N: st.timedeltas(timedelta(days=-3), timedelta(days=3)),
    DAY: st.dates(date(1969, 1, 1), date(2030, 1, 1)),
}
ROW = st.fixed_dictionaries({a.name: st.none() | VALUES[a.type] for a in SCHEMA} | {TS: st.integers(-(10**12), 10**15)})
TYPES = (B, INT, L, D, V, T, N, DAY)


def binary(type_: Type, op: str, left: Expression, right: Expression) -> Expression:
    return Binary(type_, op, left, right)


@st.composite
def expressions(draw: st.DrawFn, type_: Type, depth: int = 3) -> Expression:
    def sub(wanted: Type) -> Expression:
        return draw(expressions(wanted, depth - 1))

    def some(*choices: str) -> str:
        return draw(st.sampled_from(choices))

    if depth == 0 or draw(st.integers(0, 5)) == 0:
        columns = [Column(a.type, a.name) for a in SCHEMA if a.type is type_]
        if type_ is T:
            columns.append(Column(T, TS))
        if draw(st.booleans()) and columns:
            return draw(st.sampled_from(columns))
        return Literal(type_, draw(st.none() | VALUES[type_]))
    shape = draw(st.integers(0, 9))
    if shape == 0:
        branches = tuple((sub(B), sub(type_)) for _ in range(draw(st.integers(1, 2))))
        return Case(type_, branches, sub(type_) if draw(st.booleans()) else None)
    if shape == 1:
        return Call(type_, some("COALESCE", "GREATEST", "LEAST", "NULLIF"), (sub(type_), sub(type_)))
    if shape == 2:
        return Call(type_, "IF", (sub(B), sub(type_), sub(type_)))
    if type_ is B:
        other = draw(st.sampled_from(TYPES))
        if shape < 5:
            return binary(B, some("AND", "OR"), sub(B), sub(B))
        if shape == 5:
            return Unary(B, some("NOT"), sub(B))
        if shape == 6:
            return Unary(B, some("IS NULL", "IS NOT NULL"), sub(other))
        if shape == 7:
            literals = st.lists(st.none() | VALUES[other], min_size=1, max_size=3)
            return InList(B, sub(other), tuple(Literal(other, value) for value in draw(literals)))
        if shape == 8:
            pattern = Literal(V, draw(st.text("aB%_. ", max_size=4)))
            return binary(B, "LIKE", sub(V), draw(st.sampled_from([pattern, Column(V, "s")])))
        return binary(B, some("=", "<>", "<", "<=", ">", ">="), sub(other), sub(other))
    if type_ in (INT, L, D):
        if shape == 3:
            return Unary(type_, "-", sub(type_))
        if shape == 4:
            return Call(type_, some("ABS", "SIGN", "FLOOR", "CEIL"), (sub(type_),))
        if shape == 5 and type_ is D:
            return Call(D, some("SQRT", "LN", "EXP", "ROUND"), (sub(D),))
        if shape == 6 and type_ is D:
            return binary(D, "/", sub(draw(st.sampled_from([INT, L, D]))), sub(D))
        if shape == 7 and type_ is L:
            return Call(L, "LENGTH", (sub(V),))
        if shape == 8 and type_ is L:
            field = some("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "DOW", "DOY", "WEEK", "QUARTER")
            return Call(L, "EXTRACT", (Literal(V, field), sub(T)))
        if shape == 9:
            return binary(type_, "%", sub(type_), sub(type_))
        return binary(type_, some("+", "-"), sub(type_), sub(type_))
    if type_ is V:
        if shape < 5:
            return Call(V, some("UPPER", "LOWER", "TRIM"), (sub(V),))
        if shape == 5:
            return Call(V, "REPLACE", (sub(V), Literal(V, draw(st.text("aB.", min_size=1, max_size=2))), sub(V)))
        if shape == 6:
            return Call(V, "SUBSTRING", (sub(V), sub(INT), sub(L)))
        if shape == 7:
            return Cast(V, sub(draw(st.sampled_from([B, INT, L, D, T, DAY]))))
        return Call(V, "CONCAT", (sub(V), sub(V))) if shape == 8 else binary(V, "||", sub(V), sub(V))
    if type_ is T:
        if shape < 7:
            return binary(T, some("+", "-"), sub(draw(st.sampled_from([T, DAY]))), sub(N))
        return Cast(T, sub(DAY))
    if type_ is N:
        return binary(N, "-", sub(T), sub(T)) if shape < 6 else binary(N, some("+", "-"), sub(N), sub(N))
    return Cast(DAY, sub(T))


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return bool(a == b)


def column(e: Expression, rows: list[dict[str, Any]]) -> list[Any]:
    frame = pl.DataFrame(rows, schema=SCHEMA.polars)
    made = frame.select(to_polars(e).alias("made"), TS)["made"]
    assert made.dtype == e.type.polars or made.dtype == pl.Null
    return made.to_list()


@settings(max_examples=tries(250))
@given(st.sampled_from(TYPES).flatmap(expressions), st.lists(ROW, min_size=1, max_size=4))
def test_columns_agree_with_rows(e: Expression, rows: list[dict[str, Any]]) -> None:
    try:
        expected = [evaluate(e, row) for row in rows]
    except OverflowError:
        return
    found = column(e, rows)
    assert all(map(same, found, expected)), (str(e), found, expected)


def scalar(e: Expression, **values: Any) -> Any:
    rows = [{a.name: values.get(a.name) for a in SCHEMA} | {TS: values.get(TS, 0)}]
    return column(e, rows)[0]


def call(type_: Type, function: str, *values: Any) -> Any:
    types = {bool: B, int: L, float: D, str: V, datetime: T, timedelta: N, date: DAY, type(None): Type.NULL}
    return scalar(Call(type_, function, tuple(Literal(types[type(v)], v) for v in values)))


@pytest.mark.parametrize(
    ("type_", "function", "values", "expected"),
    [
        (D, "ROUND", (2.5,), 3.0),
        (D, "ROUND", (-2.5,), -3.0),
        (D, "ROUND", (1.257, 2), 1.26),
        (D, "ROUND", (1234.0, -2), 1200.0),
        (L, "MOD", (-7, 3), -1),
        (L, "MOD", (7, 0), None),
        (D, "MOD", (7.5, 2.0), 1.5),
        (D, "POWER", (2, 10), 1024.0),
        (D, "POWER", (-1.0, 0.5), None),
        (D, "LN", (0.0,), None),
        (V, "SUBSTRING", ("stream", 2, 3), "tre"),
        (V, "SUBSTRING", ("stream", -3), "eam"),
        (V, "SUBSTRING", ("stream", -9, 4), "s"),
        (V, "CONCAT", ("a", None), None),
        (V, "TRIM", ("xxaxx", "x"), "a"),
        (V, "LTRIM", ("  a ",), "a "),
        (V, "RTRIM", ("  a ",), "  a"),
        (L, "GREATEST", (3, None, 5), 5),
        (D, "GREATEST", (math.nan, 1.0), math.nan),
        (D, "GREATEST", (1.0, None, math.nan), math.nan),
        (D, "GREATEST", (1.0, None, math.inf), math.inf),
        (D, "GREATEST", (None, None), None),
        (D, "LEAST", (math.nan, 1.0), 1.0),
        (D, "LEAST", (math.nan, None), math.nan),
        (V, "COALESCE", (None, "x"), "x"),
        (L, "IF", (None, 1, 2), 2),
        (D, "EXTRACT", ("SECOND", datetime(2024, 1, 1, 0, 0, 5, 250_000)), 5.25),
        (L, "EXTRACT", ("HOUR", date(2024, 1, 1)), 0),
        (L, "EXTRACT", ("HOUR", timedelta(days=2, hours=5, minutes=59)), 5),
        (L, "EXTRACT", ("MINUTE", timedelta(minutes=-61)), -1),
        (D, "EXTRACT", ("EPOCH", timedelta(seconds=1.5)), 1.5),
    ],
)
def test_functions(type_: Type, function: str, values: tuple[Any, ...], expected: Any) -> None:
    found = call(type_, function, *values)
    assert same(found, expected) or (found != found and expected != expected)


@pytest.mark.parametrize(
    ("source", "value", "target", "expected"),
    [
        (V, " 12 ", L, 12),
        (V, "2.7", INT, 2),
        (V, "nine", D, None),
        (V, "T", B, True),
        (V, "maybe", B, None),
        (V, "2024-01-02 03:04:05.5", T, datetime(2024, 1, 2, 3, 4, 5, 500_000)),
        (V, "2024-01-02", T, datetime(2024, 1, 2)),
        (V, "12.5", T, datetime(1970, 1, 1, 0, 0, 12, 500_000)),
        (V, "2024-01-02", DAY, date(2024, 1, 2)),
        (V, "90", N, timedelta(seconds=90)),
        (L, 60, T, datetime(1970, 1, 1, 0, 1)),
        (T, datetime(1970, 1, 1, 0, 1, 0, 7), L, 60),
        (T, datetime(2024, 1, 2, 3), V, "2024-01-02 03:00:00"),
        (D, -2.9, L, -2),
        (L, 1 << 40, INT, None),
        (B, True, INT, 1),
    ],
)
def test_casts(source: Type, value: Any, target: Type, expected: Any) -> None:
    assert scalar(Cast(target, Literal(source, value))) == expected


def test_like() -> None:
    for text, pattern, expected in [
        ("a.b", "a.b", True),
        ("axb", "a.b", False),
        ("abc", "a%", True),
        ("abc", "%c", True),
        ("abc", "%b%", True),
        ("abc", "a_c", True),
        ("a\nc", "a_c", True),
        ("a%c", "a\\%c", False),
        ("a\\bc", "a\\%c", True),
        ("ab\\", "%\\", True),
        ("b\\a", "%\\%", True),
        ("ba", "%\\%", False),
        ("", "%", True),
        ("a+b", "_+b", True),
        ("ab", "\\a_", False),
        ("\\ab", "\\a_", True),
        ("a\\b", "a\\_", True),
        ("ab\\", "_b\\", True),
    ]:
        literal = Binary(B, "LIKE", Literal(V, text), Literal(V, pattern))
        assert scalar(literal) is expected, pattern
        assert scalar(Binary(B, "LIKE", Literal(V, text), Column(V, "s")), s=pattern) is expected, pattern


def test_interval_arithmetic() -> None:
    minute = Literal(N, timedelta(minutes=1))
    assert scalar(Binary(N, "*", minute, Literal(L, 3))) == timedelta(minutes=3)
    assert scalar(Binary(N, "*", Literal(D, 0.5), minute)) == timedelta(seconds=30)
    assert scalar(Binary(N, "/", minute, Literal(L, 4))) == timedelta(seconds=15)
    assert scalar(Binary(N, "/", minute, Column(L, "n")), n=0) is None
    assert scalar(Binary(D, "/", minute, Literal(N, timedelta(seconds=20)))) == 3.0
    assert scalar(Binary(DAY, "+", Literal(DAY, date(2024, 2, 28)), Literal(L, 2))) == date(2024, 3, 1)
    assert scalar(Binary(L, "-", Literal(DAY, date(2024, 3, 1)), Literal(DAY, date(2024, 2, 28)))) == 2
    assert scalar(Binary(B, "<", Column(T, TS), Column(T, "t")), t=datetime(1970, 1, 1, 0, 0, 1), __ts=5) is True
    assert scalar(Binary(L, "+", Column(L, TS), Literal(L, 1)), __ts=5) == 6


def test_a_condition_that_is_null_selects_nothing() -> None:
    frame = pl.DataFrame({"n": [1, None, 3]})
    assert frame.filter(predicate(Literal(Type.NULL, None))).height == 0
    assert frame.filter(predicate(Binary(B, ">", Column(L, "n"), Literal(L, 1))))["n"].to_list() == [3]


def test_unknown_functions_are_named() -> None:
    with pytest.raises(BindError, match="ROUNDD"):
        to_polars(Call(D, "ROUNDD", (Literal(D, 1.0),)))
    with pytest.raises(BindError, match="FORTNIGHT"):
        to_polars(Call(L, "EXTRACT", (Literal(V, "FORTNIGHT"), Column(T, "t"))))
