"""The multi-join against its reference: rows, punctuation and state under arbitrary cuts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.expression import Binary, Column, Expression
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import below
from millstream.algebra.schema import FOREVER, TS, Attribute, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.values import decode, encode
from millstream.algebra.window import Window
from millstream.runtime.join.multi import kernel as multi_join_kernel
from millstream.runtime.join.multi.multi_join import MultiJoin
from millstream.runtime.join.multi.partners import Partners, by_code
from millstream.runtime.operator.contract import Input
from tests.reference.evaluate import evaluate
from tests.reference.later_partner import compared
from tests.reference.multi_join import ReferenceMultiJoin
from tests.runtime.driving import Row, bag
from tests.runtime.ports import Arrival, Step, arrivals, cuts, in_order, run, same_promises, steps
from tests.tries import tries

OTHERS = ("w", "x", "y", "z")
ALIASES = ("a", "b", "c", "d")
SCHEMAS = tuple(
    Schema.of(("k", Type.BIGINT), (other, Type.BIGINT), ("ts", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")
    for other in OTHERS
)
NAMES = tuple({n: f"{alias}.{n}" for n in s.names} for alias, s in zip(ALIASES, SCHEMAS, strict=True))
RESIDUAL = Binary(Type.BOOLEAN, "<=", Column(Type.BIGINT, "a.w"), Column(Type.BIGINT, "b.x"))
TIMES = [
    compared("a.ts", ">=", "b.ts", -2),
    compared("b.ts", "<", "a.ts"),
    compared("b.ts", "<=", "a.w"),
    compared("a.w", "=", "b.ts", 1),
]
"""Conditions that bound the time of one side from one side."""
UNBOUNDED = Window()

window_range = st.integers(0, 5).map(lambda n: Window(range=n))
window_rows = st.integers(0, 3).map(lambda n: Window(rows=n))
windows = st.one_of(st.just(UNBOUNDED), window_range, window_rows)
residuals = st.sampled_from([None, RESIDUAL, *TIMES])
Windows = tuple[Window, ...]


def output(n: int) -> Schema:
    return Schema(tuple(Attribute(NAMES[i][a.name], a.type) for i in range(n) for a in SCHEMAS[i]), TimeKind.EXTERNAL)


def join(made: Windows, merges: bool, residual: Expression | None = None) -> MultiJoin:
    n = len(made)
    return MultiJoin(SCHEMAS[:n], output(n), [("k",)] * n, made, residual, merges=merges)


def reference(made: Windows, merges: bool, residual: Expression | None) -> ReferenceMultiJoin:
    def holds(row: Row) -> bool | None:
        return True if residual is None else evaluate(residual, row)

    return ReferenceMultiJoin(SCHEMAS[: len(made)], NAMES, "k", holds, made, merges, residual)


def feed(model: ReferenceMultiJoin, step: Step, merges: bool) -> None:
    for port, row in in_order(step, merges, range(len(step))):
        model.row(port, row)
    for port, portion in enumerate(step):
        for pattern in portion.patterns:
            model.punctuation(port, pattern)
        model.bound(port, max(portion.bound, portion.progress))


def stored(operator: MultiJoin, side: int) -> list[Row]:
    rows = operator.tables()[f"input{side}"].frame().to_dicts()
    back = {new: old for old, new in NAMES[side].items()} | {TS: TS}
    return [{back[name]: value for name, value in row.items() if name in back} for row in rows]


def by_port(given_arrivals: list[Arrival]) -> list[bool]:
    """Cuts wherever the port changes: without an order across ports, the engine gives one port at a time."""
    ports = [port for port, _ in given_arrivals]
    return [a != b for a, b in zip(ports, [*ports[1:], -1], strict=False)] or [True]


def check(given_arrivals: list[Arrival], cut: list[bool], made: Windows, residual: Any, merges: bool) -> MultiJoin:
    operator, model = join(made, merges, residual), reference(made, merges, residual)
    schemas, tie_order = SCHEMAS[: len(made)], operator.tie_order if merges else None
    for step in steps(given_arrivals, schemas, merges, tie_order):
        feed(model, step, merges)
    flags = by_port(given_arrivals) if operator.tie_order is not None and not merges else cut
    trace = run(operator, steps(given_arrivals, schemas, merges, tie_order, flags), schemas)
    assert bag(trace.rows) == bag(model.out_rows)
    for side in range(len(made)):
        held, known = bag(stored(operator, side)), bag([row for _, row in model.stored[side]])
        # A condition on time may exclude all stored partners, which the reference does not look at.
        timed = residual is not None and any(name.endswith(".ts") for name in residual.columns())
        assert held <= known if timed else held == known, side
    assert same_promises(trace.punctuations, model.out_patterns), (trace.punctuations, model.out_patterns)
    if merges:
        times = [row[TS] for row in trace.rows]
        assert times == sorted(times)
    return operator


@st.composite
def cases(draw: st.DrawFn, ordered: bool, kinds: Any = windows, narrow: bool | None = None) -> Any:
    n = draw(st.integers(2, 4))
    if narrow is None:
        narrow = draw(st.booleans())
    made = tuple(draw(kinds) for _ in range(n))
    return draw(arrivals(ordered=ordered, others=OTHERS[:n], size=30, narrow=narrow)), made


@settings(max_examples=tries(30))
@given(cases(ordered=True), cuts, residuals)
def test_merging(case: Any, cut: Any, residual: Any) -> None:
    check(case[0], cut, case[1], residual, merges=True)


@settings(max_examples=tries(30))
@given(cases(ordered=False), cuts, residuals)
def test_on_arrival(case: Any, cut: Any, residual: Any) -> None:
    check(case[0], cut, case[1], residual, merges=False)


@settings(max_examples=tries(30))
@given(cases(ordered=True, kinds=window_range, narrow=True), cuts)
def test_time_windows_of_few_keys(case: Any, cut: Any) -> None:
    check(case[0], cut, case[1], None, merges=True)


@settings(max_examples=tries(30))
@given(cases(ordered=False, kinds=st.one_of(st.just(UNBOUNDED), window_range), narrow=True), cuts)
def test_time_windows_on_arrival(case: Any, cut: Any) -> None:
    check(case[0], cut, case[1], None, merges=False)


@settings(max_examples=tries(30))
@given(cases(ordered=True, kinds=st.one_of(window_rows, windows), narrow=True), cuts)
def test_windows_of_rows(case: Any, cut: Any) -> None:
    check(case[0], cut, case[1], None, merges=True)


@settings(max_examples=tries(10))
@given(cases(ordered=True, narrow=True), cuts)
def test_many_results_are_built_in_portions(case: Any, cut: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multi_join_kernel, "MOST_RESULTS", 2)
        check(case[0], cut, case[1], RESIDUAL, merges=True)


@settings(max_examples=tries(30))
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-5, 5)), max_size=12),
    st.lists(st.tuples(st.integers(0, 3), st.integers(-6, 6), st.integers(0, 6)), min_size=1, max_size=6),
    st.sampled_from([1, 1 << 58]),
)
def test_partners_are_stretches(held: Any, asked: Any, scale: int) -> None:
    codes, positions = (np.array([item[i] for item in held], dtype=np.int64) for i in (0, 1))
    partners = Partners(codes, positions * scale, np.ones(4, dtype=np.bool_))
    wanted, low, length = (np.array([item[i] for item in asked], dtype=np.int64) for i in (0, 1, 2))
    first, count = partners.find(wanted, low * scale, (low + length) * scale)
    for place, (code, bottom, size) in enumerate(asked):
        found = partners.rows[first[place] : first[place] + count[place]].tolist()
        expected = [row for row, (own, at) in enumerate(held) if own == code and bottom <= at < bottom + size]
        assert sorted(found) == expected


def test_many_keys_are_sorted_in_several_rounds() -> None:
    codes = np.random.default_rng(3).integers(0, 1 << 34, 1000)
    assert (by_code(codes, 1 << 34) == np.argsort(codes, kind="stable")).all()


def test_a_tuple_without_a_key_counts_in_a_window_of_rows() -> None:
    rows = [(1, {"ts": 0, "k": key, "x": 0, TS: 0}) for key in (0, None)]
    check(rows, [True], (UNBOUNDED, Window(rows=1)), None, merges=False)


@settings(max_examples=tries(30))
@given(cases(ordered=False), cuts, st.sampled_from(["key", "all", "end"]))
def test_nothing_is_held_when_everything_is_closed(case: Any, cut: Any, way: str) -> None:
    operator = check(case[0], cut, case[1], None, merges=False)
    n = len(case[1])
    if way == "end":
        operator.process([Input(bound=FOREVER)] * n)
    else:
        pattern = Pattern.of(k=below(99)) if way == "key" else Pattern()
        operator.process([Input(punctuations=Punctuations.of([pattern]))] * n)
    assert operator.state_rows() == 0
    assert not any(side["pending"] for side in operator.scalars()["sides"])


@settings(max_examples=tries(30))
@given(cases(ordered=True), cuts, st.integers(0, 20))
def test_a_restored_join_goes_on_as_if_nothing_had_happened(case: Any, cut: Any, when: int) -> None:
    given_arrivals, made = case
    schemas = SCHEMAS[: len(made)]
    through, first = (join(made, True) for _ in range(2))
    operator = first
    for index, step in enumerate(steps(given_arrivals, schemas, True, through.tie_order, cut)):
        if index == when:
            operator = join(made, True)
            operator.restore_scalars(decode(encode(first.scalars())))
            for name, table in first.tables().items():
                operator.tables()[name].replace(table.frame())
        inputs = [portion.input(schema) for portion, schema in zip(step, schemas, strict=True)]
        expected, found = through.process(inputs), operator.process(inputs)
        assert (found.rows is None) == (expected.rows is None)
        assert found.rows is None or found.rows.equals(expected.rows)
        assert found.punctuations == expected.punctuations
    assert operator.state_rows() == through.state_rows()
