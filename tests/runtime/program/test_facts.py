"""What is known of the columns of local tables."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millstream.algebra.expression import Binary, Column, Expression, Literal
from millstream.algebra.program.expression import Argument
from millstream.algebra.program.program import LocalTable, Program
from millstream.algebra.program.query import Query
from millstream.algebra.program.statement import Insert, Statement, Update
from millstream.algebra.schema import Attribute
from millstream.algebra.types import Type
from millstream.runtime.program.facts import HIGH, LOW, NOTHING, Fact, Facts

N = Column(Type.BIGINT, "t.n")
X = Argument(Type.BIGINT, "x")


def number(value: int | None) -> Literal:
    return Literal(Type.BIGINT, value)


def binary(op: str, left: Expression, right: Expression) -> Binary:
    return Binary(Type.BIGINT, op, left, right)


def facts(inserted: list[Expression], *updated: Expression, initialize: bool = True) -> Facts:
    """Those of a program with a table of one column that gets these values."""
    table, x = LocalTable("t", (Attribute("n", Type.BIGINT),)), Attribute("x", Type.BIGINT)
    inserts: tuple[Statement, ...] = (Insert("t", tuple(Query((), (value,)) for value in inserted)),)
    updates = tuple(Update("t", ((0, value),)) for value in updated)
    blocks = (inserts, updates) if initialize else ((), (*inserts, *updates))
    return Facts(Program("f", (x,), (), (table,), *blocks, ignore_nulls=True))


def test_a_column_has_the_values_of_all_statements() -> None:
    assert facts([number(3), number(-1)]).of(N) == Fact(False, -1, 3)
    assert facts([number(3)], number(None)).of(N).nullable
    assert facts([number(3)], binary("%", X, number(10))).of(N) == Fact(False, -9, 9)


def test_a_bound_that_grows_is_dropped() -> None:
    assert facts([number(3)], binary("+", N, number(100))).of(N) == Fact(False, 3, HIGH)
    assert facts([number(3)], binary("-", N, number(100))).of(N) == Fact(False, LOW, 3)
    assert facts([number(3)], binary("%", binary("+", N, number(1)), number(5))).of(N) == Fact(False, 0, 4)


def test_a_counter_never_reaches_the_bounds_of_its_type() -> None:
    up, down = binary("+", N, number(1)), binary("-", N, number(1))
    assert facts([number(3)], up).of(N) == Fact(False, 3, 3 + (1 << 59))
    assert facts([number(3)], up, down).of(N) == Fact(False, 3 - (1 << 59), 3 + (1 << 59))
    assert facts([number(3)], up).fits(up)
    assert facts([number(1 << 62)], up).of(N) == Fact(False, 1 << 62, HIGH)
    assert facts([number(3)], X, up).of(N) == Fact(False, LOW, HIGH)
    assert facts([number(3), up], up).of(N).high == HIGH


def test_tables_that_others_fill_are_unknown() -> None:
    assert facts([number(3)], initialize=False).of(N) == NOTHING


def test_a_remainder_by_a_column_that_is_never_zero_is_known() -> None:
    assert facts([number(1009), number(1021)]).of(binary("%", X, N)) == Fact(False, -1020, 1020)
    assert facts([number(0), number(1021)]).of(binary("%", X, N)) == NOTHING


def test_what_fits() -> None:
    known = facts([number(3), number(1 << 40)])
    assert known.fits(binary("*", N, number(1 << 22)))
    assert not known.fits(binary("*", N, number(1 << 23)))
    assert known.exceeds(binary("+", X, number(1))) == (False, True)


@given(st.data())
def test_values_are_in_their_ranges(data: st.DataObject) -> None:
    """Of operators on a column that has two values."""
    values = data.draw(st.lists(st.integers(-20, 20), min_size=1, max_size=2))
    known, n = facts([number(value) for value in values]), data.draw(st.sampled_from(values))
    node, value = (N, n) if data.draw(st.booleans()) else (number(n), n)
    made: Expression = node
    for op in data.draw(st.lists(st.sampled_from("+-*%"), max_size=5)):
        other = data.draw(st.integers(1, 9))
        made = binary(op, made, number(other))
        if op == "%":
            value = abs(value) % other * (1 if value >= 0 else -1)
        else:
            value = {"+": value + other, "-": value - other, "*": value * other}[op]
    fact = known.of(made)
    assert not fact.nullable and fact.low <= value <= fact.high
