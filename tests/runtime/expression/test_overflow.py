"""Values at the limits of their types: an overflow is an error if the value is used, and never a wrapped value."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.expression import Binary, Call, Case, Cast, Column, Expression, Literal, Unary
from millstream.algebra.types import Type
from millstream.errors import OutOfRange
from millstream.runtime.expression.checks import Checks
from millstream.runtime.expression.condition import Condition
from millstream.runtime.expression.evaluate import to_polars
from tests.reference.overflow import evaluate, row_fails
from tests.tries import tries

B, INT, L, T, N, DAY = Type.BOOLEAN, Type.INT, Type.BIGINT, Type.TIMESTAMP, Type.INTERVAL, Type.DATE
LEAST, MOST = -(1 << 63), (1 << 63) - 1
NUMBERS = {
    L: st.sampled_from([LEAST, LEAST + 1, -(1 << 32), -2, -1, 0, 1, 2, 3, 1 << 31, 1 << 62, MOST - 1, MOST])
    | st.integers(LEAST, MOST),
    INT: st.sampled_from([-(1 << 31), -1, 0, 1, 7, (1 << 31) - 1]),
    B: st.booleans(),
    T: st.datetimes() | st.sampled_from([datetime.min, datetime.max]),
    N: st.sampled_from([timedelta(0), timedelta(days=1), timedelta(days=-3), timedelta(days=10**8)]),
    DAY: st.dates() | st.sampled_from([date.min, date.max]),
}
COLUMNS = {"a": L, "b": L, "i": INT, "p": B, "t": T, "u": T, "w": N, "day": DAY}
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | NUMBERS[type_] for name, type_ in COLUMNS.items()}), min_size=1, max_size=6
)
SMALL = st.lists(
    st.fixed_dictionaries(
        {n: st.none() | (st.integers(-99, 99) if t in (L, INT) else NUMBERS[t]) for n, t in COLUMNS.items()}
    ),
    min_size=1,
    max_size=6,
)


@st.composite
def expressions(draw: st.DrawFn, type_: Type, depth: int = 3) -> Expression:
    def sub(wanted: Type) -> Expression:
        return draw(expressions(wanted, depth - 1))

    if depth == 0 or draw(st.integers(0, 5)) == 0:
        columns = [Column(t, name) for name, t in COLUMNS.items() if t is type_]
        return draw(st.sampled_from(columns) | NUMBERS[type_].map(lambda value: Literal(type_, value)))
    kind = draw(st.sampled_from(["case", "coalesce", "own", "own", "own"]))
    if kind == "case":
        otherwise = sub(type_) if draw(st.booleans()) else None
        return Case(type_, tuple((sub(B), sub(type_)) for _ in range(draw(st.integers(1, 2)))), otherwise)
    if kind == "coalesce":
        return Call(type_, "COALESCE", (sub(type_), sub(type_)))
    match type_:
        case Type.BIGINT:
            made = draw(st.sampled_from(["+", "-", "*", "%", "minus", "ABS", "ROUND", "GREATEST", "cast"]))
            if made == "minus":
                return Unary(L, "-", sub(L))
            if made in ("ABS", "GREATEST"):
                return Call(L, made, (sub(L),) if made == "ABS" else (sub(L), sub(L)))
            if made == "ROUND":
                return Call(L, "ROUND", (sub(L), Literal(INT, draw(st.integers(-22, 3)))))
            return Cast(L, sub(INT)) if made == "cast" else Binary(L, made, sub(L), sub(L))
        case Type.INT:
            return draw(st.sampled_from([Unary(INT, "-", sub(INT)), Call(INT, "ABS", (sub(INT),)), Cast(INT, sub(L))]))
        case Type.TIMESTAMP:
            return Binary(T, draw(st.sampled_from("+-")), sub(T), sub(N))
        case Type.INTERVAL:
            added = Binary(N, draw(st.sampled_from("+-")), sub(N), sub(N))
            return draw(st.sampled_from([added, Binary(N, "-", sub(T), sub(T)), Unary(N, "-", sub(N))]))
        case Type.DATE:
            return Binary(DAY, draw(st.sampled_from("+-")), sub(DAY), Cast(L, sub(INT)))
    op = draw(st.sampled_from(["<", "=", "AND", "OR", "NOT", "IS NULL"]))
    if op in ("AND", "OR"):
        return Binary(B, op, sub(B), sub(B))
    if op == "NOT":
        return Unary(B, op, sub(B))
    compared = draw(st.sampled_from([L, T]))
    return Unary(B, op, sub(compared)) if op == "IS NULL" else Binary(B, op, sub(compared), sub(compared))


def page(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={name: type_.polars for name, type_ in COLUMNS.items()})


@settings(max_examples=tries(300))
@given(st.sampled_from(list(NUMBERS)).flatmap(expressions), ROWS | SMALL)
def test_an_overflow_is_found_where_the_value_is_used(e: Expression, rows: list[dict[str, Any]]) -> None:
    frame = page(rows)
    wanted = [row_fails(None, [e], row) for row in rows]
    fails = Checks(None, [e]).failing(frame)
    assert ([False] * len(rows) if fails is None else fails.tolist()) == wanted
    made = frame.with_columns(to_polars(e).alias("made")).get_column("made").to_physical()
    known = [evaluate(e, row) for row, failed in zip(rows, wanted, strict=True) if not failed]
    found = made.filter(~pl.Series(wanted, dtype=pl.Boolean)).to_list()
    assert found == pl.Series(known, dtype=e.type.polars).to_physical().to_list()


@settings(max_examples=tries(200))
@given(expressions(B), st.lists(expressions(L), max_size=2), ROWS)
def test_a_row_that_is_dropped_uses_nothing(c: Expression, items: list[Expression], rows: list[dict[str, Any]]) -> None:
    wanted = [row_fails(c, items, row) for row in rows]
    fails = Checks(c, items).failing(page(rows))
    assert ([False] * len(rows) if fails is None else fails.tolist()) == wanted
    call = Call(B, "OVERFLOWS", (c, *items))
    assert page(rows).with_columns(to_polars(call).alias("fails")).get_column("fails").to_list() == wanted


@given(expressions(B), ROWS)
def test_a_condition_raises_or_filters(c: Expression, rows: list[dict[str, Any]]) -> None:
    frame = page(rows)
    if any(row_fails(c, [], row) for row in rows):
        with pytest.raises(OutOfRange, match="does not fit"):
            Condition(c).filter(frame)
        return
    holds = Condition(c).holds(frame)
    assert frame.filter(pl.Series(holds)).equals(Condition(c).filter(frame))


def out_of_range(e: Expression, **values: Any) -> str:
    columns = {name: type_.polars for name, type_ in COLUMNS.items() if name in values}
    with pytest.raises(OutOfRange) as caught:
        Checks(None, [e]).verify(pl.DataFrame({name: [value] for name, value in values.items()}, schema=columns))
    return str(caught.value)


def test_the_error_names_the_operator_and_its_values() -> None:
    a, b = Column(L, "a"), Column(L, "b")
    product = Binary(L, "*", a, b)
    nested = Binary(L, "+", product, Literal(L, 1))
    assert out_of_range(nested, a=MOST, b=2) == f"(a * b) does not fit BIGINT with a = {MOST}, b = 2"
    assert out_of_range(nested, a=MOST, b=1) == f"((a * b) + 1) does not fit BIGINT with a = {MOST}, b = 1"
    untaken = Case(L, ((Binary(B, "=", b, Literal(L, 3)), Unary(L, "-", a)),), product)
    assert out_of_range(untaken, a=LEAST, b=2) == f"(a * b) does not fit BIGINT with a = {LEAST}, b = 2"
    assert out_of_range(Unary(INT, "-", Column(INT, "i")), i=-(1 << 31)) == (
        "(- i) does not fit INT with i = -2147483648"
    )
    constant = Binary(L, "+", Literal(L, MOST), Literal(L, 1))
    assert out_of_range(constant, a=1) == f"({MOST} + 1) does not fit BIGINT"
    later = Binary(T, "+", Column(T, "t"), Literal(N, timedelta(days=1)))
    assert out_of_range(later, t=datetime.max).startswith(
        "(t + INTERVAL '86400' SECOND) does not fit TIMESTAMP with t = 9999-"
    )
    longer = Binary(N, "*", Column(N, "w"), Literal(Type.DOUBLE, 1e300))
    assert "does not fit INTERVAL" in out_of_range(longer, w=timedelta(days=1))
