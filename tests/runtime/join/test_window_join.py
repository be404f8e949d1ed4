"""The window join against its reference: rows, punctuation and state under arbitrary cuts."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.expression import Binary, Column, Expression, Literal
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import below, equal
from millstream.algebra.schema import FOREVER, TS, Attribute, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.values import decode, encode
from millstream.algebra.window import Window
from millstream.runtime.join.window_join import WindowJoin
from millstream.runtime.operator.contract import Input
from tests.reference.evaluate import evaluate
from tests.reference.later_partner import compared
from tests.reference.window_join import ReferenceJoin
from tests.runtime.driving import Row, bag, frame
from tests.runtime.ports import LEFT, RIGHT, Arrival, Step, arrivals, cuts, in_order, run, same_promises, steps
from tests.tries import tries

NAMES = ({n: f"a.{n}" for n in LEFT.names}, {n: f"b.{n}" for n in RIGHT.names})
OUTPUT = Schema(
    tuple(Attribute(NAMES[i][a.name], a.type) for i, s in enumerate((LEFT, RIGHT)) for a in s), TimeKind.EXTERNAL
)
SCHEMAS = (LEFT, RIGHT)
RESIDUAL = Binary(Type.BOOLEAN, "<=", Column(Type.BIGINT, "a.x"), Column(Type.BIGINT, "b.y"))
TIMES = [
    compared("a.ts", ">=", "b.ts", -2),
    compared("b.ts", "<", "a.ts"),
    compared("b.ts", "<=", "a.x"),
    compared("a.x", "=", "b.ts", 1),
]
"""Conditions that bound the time of one side from one side."""
KEYS = {"none": (), "one": (("k", "k"),), "two": (("k", "k"), ("x", "y")), "time": (("k", "k"), ("ts", "ts"))}

window_range = st.integers(0, 5).map(lambda n: Window(range=n))
window_rows = st.integers(0, 3).map(lambda n: Window(rows=n))
windows = st.one_of(st.just(Window()), window_range, window_rows)
key_choices = st.sampled_from(["one", "one", "none", "two", "time"]).map(KEYS.__getitem__)
residuals = st.sampled_from([None, RESIDUAL, *TIMES])
Windows = tuple[Window, Window]


def reference(keys: Any, residual: Expression | None, made: Windows) -> ReferenceJoin:
    def holds(row: Row) -> bool | None:
        return True if residual is None else evaluate(residual, row)

    return ReferenceJoin(SCHEMAS, NAMES, keys, holds, made, residual)


def join(keys: Any, residual: Expression | None, made: Windows, merges: bool) -> WindowJoin:
    return WindowJoin(LEFT, RIGHT, OUTPUT, keys, residual, *made, merges=merges)


def feed(model: ReferenceJoin, step: Step, merges: bool) -> None:
    for port, row in in_order(step, merges):
        model.row(port, row)
    for port, portion in enumerate(step):
        for pattern in portion.patterns:
            model.punctuation(port, pattern)
        model.bound(port, max(portion.bound, portion.progress))


def stored(operator: WindowJoin, side: int) -> list[Row]:
    rows = operator.tables()[("left", "right")[side]].frame().to_dicts()
    back = {new: old for old, new in NAMES[side].items()} | {TS: TS}
    return [{back[name]: value for name, value in row.items() if name in back} for row in rows]


def check(
    given_arrivals: list[Arrival], given_cuts: list[bool], keys: Any, residual: Any, made: Windows, merges: bool
) -> WindowJoin:
    operator, model = join(keys, residual, made, merges), reference(keys, residual, made)
    tie_order = operator.tie_order if merges else None
    for step in steps(given_arrivals, SCHEMAS, merges, tie_order):
        feed(model, step, merges)
    one_port_at_a_time = operator.tie_order is not None and not merges
    flags = by_port(given_arrivals) if one_port_at_a_time else given_cuts
    trace = run(operator, steps(given_arrivals, SCHEMAS, merges, tie_order, flags), SCHEMAS)
    assert bag(trace.rows) == bag(model.out_rows)
    for side in (0, 1):
        assert bag(stored(operator, side)) == bag([row for _, row in model.stored[side]])
    assert same_promises(trace.punctuations, model.out_patterns), (trace.punctuations, model.out_patterns)
    if merges:
        times = [row[TS] for row in trace.rows]
        assert times == sorted(times)
    return operator


def by_port(given_arrivals: list[Arrival]) -> list[bool]:
    """Cuts wherever the port changes: without an order across ports, the engine gives one port at a time."""
    ports = [port for port, _ in given_arrivals]
    return [a != b for a, b in zip(ports, [*ports[1:], -1], strict=False)] or [True]


@settings(max_examples=tries(120))
@given(arrivals(ordered=True), cuts, key_choices, residuals, st.tuples(windows, windows))
def test_merging(given: Any, cut: Any, keys: Any, residual: Any, made: Windows) -> None:
    check(given, cut, keys, residual, made, merges=True)


@settings(max_examples=tries(120))
@given(arrivals(ordered=False), cuts, key_choices, residuals, st.tuples(windows, windows))
def test_on_arrival(given: Any, cut: Any, keys: Any, residual: Any, made: Windows) -> None:
    check(given, cut, keys, residual, made, merges=False)


@settings(max_examples=tries(60))
@given(arrivals(ordered=True, narrow=True, silent=False), st.tuples(window_rows, windows), st.booleans())
def test_windows_of_rows_within_one_large_step(given: Any, made: Windows, swap: bool) -> None:
    check(given, [False], KEYS["one"], None, made[::-1] if swap else made, merges=True)


@settings(max_examples=tries(60))
@given(arrivals(ordered=False, narrow=True, silent=False), st.tuples(window_rows, window_range), st.booleans())
def test_windows_of_rows_on_arrival(given: Any, made: Windows, swap: bool) -> None:
    check(given, [True], KEYS["one"], None, made[::-1] if swap else made, merges=False)


@settings(max_examples=tries(80))
@given(arrivals(ordered=False, narrow=True), cuts, st.tuples(window_range, window_range))
def test_punctuation_on_key_and_time(given: Any, cut: Any, made: Windows) -> None:
    check(given, cut, KEYS["one"], None, made, merges=False)


@settings(max_examples=tries(40))
@given(arrivals(ordered=False), cuts, st.tuples(windows, windows), st.sampled_from(["key", "all", "end"]))
def test_nothing_is_held_when_everything_is_closed(given: Any, cut: Any, made: Windows, way: str) -> None:
    operator = check(given, cut, KEYS["one"], None, made, merges=False)
    if way == "end":
        operator.process([Input(bound=FOREVER), Input(bound=FOREVER)])
    else:
        pattern = Pattern.of(k=below(99)) if way == "key" else Pattern()
        operator.process([Input(punctuations=Punctuations.of([pattern]))] * 2)
    assert operator.state_rows() == 0
    assert not any(side["pending"] for side in operator.scalars()["sides"])


@settings(max_examples=tries(40))
@given(arrivals(ordered=True), cuts, st.tuples(windows, windows), st.integers(0, 20))
def test_a_restored_join_goes_on_as_if_nothing_had_happened(given: Any, cut: Any, made: Windows, when: int) -> None:
    through, first = (join(KEYS["one"], RESIDUAL, made, True) for _ in range(2))
    operator = first
    for index, step in enumerate(steps(given, SCHEMAS, True, through.tie_order, cut)):
        if index == when:
            operator = join(KEYS["one"], RESIDUAL, made, True)
            operator.restore_scalars(decode(encode(first.scalars())))
            for name, table in first.tables().items():
                operator.tables()[name].replace(table.frame())
        inputs = [portion.input(schema) for portion, schema in zip(step, SCHEMAS, strict=True)]
        expected, found = through.process(inputs), operator.process(inputs)
        assert (found.rows is None) == (expected.rows is None)
        assert found.rows is None or found.rows.equals(expected.rows)
        assert found.punctuations == expected.punctuations
    assert operator.state_rows() == through.state_rows()


def row(schema: Schema, key: int, time: int, **more: Any) -> Row:
    return dict.fromkeys(schema.names) | {"k": key, "ts": time, TS: time} | more


def test_worked_example_w5() -> None:
    """The window is checked when a tuple probes, not only when its own stream moves."""
    operator = join(KEYS["one"], None, (Window(range=5), Window(range=5)), True)
    left = [row(LEFT, 1, 1), row(LEFT, 2, 4), row(LEFT, 1, 9)]
    right = [row(RIGHT, 1, 2), row(RIGHT, 2, 4), row(RIGHT, 1, 8)]
    given: list[Arrival] = [*((0, r) for r in left), *((1, r) for r in right)]
    made = list(steps(given, SCHEMAS, True, None))
    trace = run(operator, iter(made), SCHEMAS)
    assert [(r["a.ts"], r["b.ts"], r[TS]) for r in trace.rows] == [(1, 2, 2), (4, 4, 4)]
    late = [Input(bound=9), Input(bound=10)]
    out = operator.process([Input(frame(LEFT, [left[2]]), None, 9), late[1]])
    assert out.rows is not None
    assert out.rows.select("a.ts", "b.ts", TS).rows() == [(9, 8, 9)]


def test_rows_that_are_purged_keep_their_place_in_the_window() -> None:
    operator = join(KEYS["one"], None, (Window(rows=2), Window(rows=0)), False)
    given: list[Arrival] = [
        (0, row(LEFT, 1, 1)),
        (0, row(LEFT, 2, 2)),
        (1, Pattern.of(k=equal(2))),
        (0, row(LEFT, 3, 3)),
        (1, row(RIGHT, 1, 4)),
        (1, row(RIGHT, 3, 4)),
    ]
    trace = run(operator, steps(given, SCHEMAS, False, None), SCHEMAS)
    assert [(r["a.k"], r["b.k"]) for r in trace.rows] == [(3, 3)]


def test_progress_goes_on_when_both_sides_have_moved() -> None:
    operator = join(KEYS["one"], None, (Window(range=5), Window(range=5)), True)
    heartbeat = Punctuations.of((), 7)
    assert operator.process([Input(punctuations=heartbeat, bound=7), Input()]).punctuations is None
    out = operator.process([Input(bound=7), Input(punctuations=Punctuations.of((), 9), bound=9)])
    assert out.punctuations is not None and out.punctuations.progress == 7 and not len(out.punctuations)
    assert operator.process([Input(bound=8), Input(bound=9)]).punctuations is None


def test_keys_of_different_types_join() -> None:
    right = Schema.of(("k", Type.INT), ("ts", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")
    output = Schema(
        (*(Attribute(f"a.{a.name}", a.type) for a in LEFT), *(Attribute(f"b.{a.name}", a.type) for a in right))
    )
    operator = WindowJoin(LEFT, right, output, (("k", "k"),))
    operator.process([Input(frame(LEFT, [row(LEFT, 7, 1)])), Input()])
    out = operator.process(
        [Input(), Input(frame(right, [row(right, 7, 2)]), Punctuations.of([Pattern.of(k=equal(7))]))]
    )
    assert out.rows is not None and out.rows.select("a.k", "b.k").rows() == [(7, 7)]
    assert operator.state_rows() == 1


def test_a_theta_join_needs_no_keys() -> None:
    residual = Binary(
        Type.BOOLEAN,
        ">",
        Column(Type.BIGINT, "a.x"),
        Binary(Type.BIGINT, "+", Column(Type.BIGINT, "b.y"), Literal(Type.BIGINT, 1)),
    )
    operator = join((), residual, (Window(), Window()), False)
    operator.process([Input(frame(LEFT, [row(LEFT, 1, 1, x=5), row(LEFT, 2, 2, x=1)])), Input()])
    out = operator.process([Input(), Input(frame(RIGHT, [row(RIGHT, 9, 3, y=2)]))])
    assert out.rows is not None and out.rows["a.k"].to_list() == [1]
