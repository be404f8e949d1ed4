"""Outer joins against their reference: pairs, padded rows, punctuation, progress and state under arbitrary cuts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.expression import Binary, Column, Expression
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import below, equal
from millstream.algebra.schema import FOREVER, TS, Attribute, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.values import decode, encode
from millstream.algebra.window import Window
from millstream.runtime.join.outer_join import OuterJoin
from millstream.runtime.join.settings import JoinSettings
from millstream.runtime.operator.contract import Input, Output
from tests.reference.evaluate import evaluate
from tests.reference.later_partner import compared
from tests.reference.outer_join import ReferenceOuterJoin, brute_force
from tests.runtime.driving import Row, Trace, bag, frame
from tests.runtime.ports import LEFT, RIGHT, Arrival, Step, arrivals, cuts, in_order, same_promises, steps
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
KINDS = {"LEFT": (True, False), "RIGHT": (False, True), "FULL": (True, True)}
Windows = tuple[Window, Window]

window_range = st.integers(0, 5).map(lambda n: Window(range=n))
window_rows = st.integers(0, 3).map(lambda n: Window(rows=n))
windows = st.one_of(st.just(Window()), window_range)
kinds = st.sampled_from(list(KINDS.values()))
key_choices = st.sampled_from(["one", "one", "one", "none", "two", "time"]).map(KEYS.__getitem__)
residuals = st.sampled_from([None, RESIDUAL, *TIMES])


def join(kept: tuple[bool, bool], keys: Any, residual: Any, made: Windows, merges: bool) -> OuterJoin:
    return OuterJoin(kept, LEFT, RIGHT, OUTPUT, keys, residual, *made, merges=merges)


def reference(kept: tuple[bool, bool], keys: Any, residual: Expression | None, made: Windows) -> ReferenceOuterJoin:
    def holds(row: Row) -> bool | None:
        return True if residual is None else evaluate(residual, row)

    return ReferenceOuterJoin(kept, SCHEMAS, NAMES, keys, holds, made, residual)


def feed(model: ReferenceOuterJoin, step: Step, merges: bool) -> None:
    for port, row in in_order(step, merges):
        model.row(port, row)
    for port, portion in enumerate(step):
        for pattern in portion.patterns:
            model.punctuation(port, pattern)
        model.bound(port, max(portion.bound, portion.progress))


def inputs_of(step: Step) -> list[Input]:
    return [portion.input(schema) for portion, schema in zip(step, SCHEMAS, strict=True)]


def ended(given: list[Arrival]) -> list[Arrival]:
    return [*given, (0, FOREVER), (1, FOREVER)]


class Watched:
    """An operator that is checked after every step: nothing comes below what it has said of time."""

    def __init__(self, operator: OuterJoin) -> None:
        self.operator, self.trace, self.bound = operator, Trace(), -FOREVER

    def process(self, step: Step) -> Output:
        output = self.operator.process(inputs_of(step))
        if output.rows is not None and output.rows.height:
            assert int(output.rows[TS].min()) >= self.bound  # type: ignore[arg-type]
        self.trace.take(output)
        self.bound = max(self.bound, self.operator.output_bound([portion.bound for portion in step]))
        assert self.trace.progress <= self.bound or self.trace.progress == FOREVER
        return output


def by_port(given: list[Arrival]) -> list[bool]:
    ports = [port for port, _ in given]
    return [a != b for a, b in zip(ports, [*ports[1:], -1], strict=False)] or [True]


def check(
    given: list[Arrival],
    cut: list[bool],
    kept: tuple[bool, bool],
    keys: Any,
    residual: Any,
    made: Windows,
    merges: bool,
) -> Watched:
    watched, model = Watched(join(kept, keys, residual, made, merges)), reference(kept, keys, residual, made)
    operator = watched.operator
    if operator.tie_order is not None and not merges:
        cut = by_port(given)
    rows: list[list[Row]] = [[], []]
    for step in steps(given, SCHEMAS, merges, operator.tie_order if merges else None, cut):
        feed(model, step, merges)
        watched.process(step)
        for side, portion in enumerate(step):
            rows[side] += portion.rows
        # Neither a padded row too many nor one too early, nor one too late.
        assert bag(watched.trace.rows) == bag(model.out_rows + model.padded)
        assert operator.output_bound([FOREVER, FOREVER]) == model.waiting()
        assert operator.state_rows() == sum(map(len, model.stored))
    assert same_promises(watched.trace.punctuations, model.out_patterns), model.out_patterns
    if not model.by_rows and given[-2:] == ended([]):
        pairs, padded = brute_force(model, rows)
        assert bag(watched.trace.rows) == bag(pairs + padded)
    return watched


@settings(max_examples=tries(40))
@given(arrivals(ordered=True), cuts, kinds, key_choices, residuals, st.tuples(windows, windows))
def test_merging(given: Any, cut: Any, kept: Any, keys: Any, residual: Any, made: Windows) -> None:
    check(ended(given), cut, kept, keys, residual, made, merges=True)


@settings(max_examples=tries(40))
@given(arrivals(ordered=False), cuts, kinds, key_choices, residuals, st.tuples(windows, windows))
def test_on_arrival(given: Any, cut: Any, kept: Any, keys: Any, residual: Any, made: Windows) -> None:
    check(ended(given), cut, kept, keys, residual, made, merges=False)


@settings(max_examples=tries(40))
@given(arrivals(ordered=False, narrow=True), cuts, kinds, residuals, st.tuples(windows, windows))
def test_punctuation_on_key_and_time(given: Any, cut: Any, kept: Any, residual: Any, made: Windows) -> None:
    check(given, cut, kept, KEYS["one"], residual, made, merges=False)


@settings(max_examples=tries(40))
@given(arrivals(ordered=True, narrow=True), cuts, kinds, st.tuples(window_rows, windows), st.booleans(), st.booleans())
def test_windows_of_rows(given: Any, cut: Any, kept: Any, made: Windows, swap: bool, merges: bool) -> None:
    check(given, cut, kept, KEYS["one"], RESIDUAL, made[::-1] if swap else made, merges)


lazy = st.builds(
    JoinSettings,
    purge_threshold=st.integers(2, 9),
    index=st.sampled_from(["eager", "lazy"]),
    propagation=st.sampled_from(["eager", "count"]),
    propagation_count=st.integers(1, 4),
    memory_limit=st.sampled_from([0, 1]),
)


@settings(max_examples=tries(30))
@given(arrivals(ordered=False), cuts, kinds, residuals, st.tuples(windows, windows), lazy)
def test_lazy_purging_pads_later(
    given: Any, cut: Any, kept: Any, residual: Any, made: Windows, lazily: JoinSettings
) -> None:
    watched, model = (
        Watched(join(kept, KEYS["one"], residual, made, False)),
        reference(kept, KEYS["one"], residual, made),
    )
    watched.operator.configure(lazily)
    for step in steps(ended(given), SCHEMAS, False, None, cut):
        feed(model, step, False)
        watched.process(step)
        assert bag(watched.trace.rows) <= bag(model.out_rows + model.padded)
        if not lazily.memory_limit or any(window.range is not None for window in made):  # else pairs wait on disk
            assert bag(model.out_rows) <= bag(watched.trace.rows)
    assert bag(watched.trace.rows) == bag(model.out_rows + model.padded)
    assert not any(len(table) for table in watched.operator.tables().values())


@settings(max_examples=tries(25))
@given(arrivals(ordered=False), cuts, kinds, st.tuples(windows, windows), st.sampled_from(["key", "all", "end"]))
def test_nothing_is_held_when_everything_is_closed(given: Any, cut: Any, kept: Any, made: Windows, way: str) -> None:
    watched = check(given, cut, kept, KEYS["one"], None, made, merges=False)
    operator = watched.operator
    if way == "end":
        operator.process([Input(bound=FOREVER), Input(bound=FOREVER)])
    else:
        pattern = Pattern.of(k=below(99)) if way == "key" else Pattern()
        operator.process([Input(punctuations=Punctuations.of([pattern]))] * 2)
    assert operator.state_rows() == 0
    assert not any(len(table) for table in operator.tables().values())
    assert not any(side["pending"] for side in operator.scalars()["sides"])
    assert operator.output_bound([FOREVER, FOREVER]) == FOREVER


@settings(max_examples=tries(40))
@given(arrivals(ordered=True), cuts, kinds, st.tuples(windows, windows), st.booleans(), st.integers(0, 20))
def test_a_restored_join_goes_on_as_if_nothing_had_happened(
    given: Any, cut: Any, kept: Any, made: Windows, merges: bool, when: int
) -> None:
    through, operator = (join(kept, KEYS["one"], RESIDUAL, made, merges) for _ in range(2))
    stored: dict[str, tuple[dict[int, Any], dict[int, list[int]]]] = {name: ({}, {}) for name in operator.tables()}
    for index, step in enumerate(steps(ended(given), SCHEMAS, merges, None, cut)):
        if index == when:
            values = decode(encode(operator.scalars()))
            operator = join(kept, KEYS["one"], RESIDUAL, made, merges)
            for name, table in operator.tables().items():
                table.restore(stored[name][0], {key: np.array(dead) for key, dead in stored[name][1].items()})
            operator.restore_scalars(values)
        expected, found = through.process(inputs_of(step)), operator.process(inputs_of(step))
        assert (found.rows is None) == (expected.rows is None)
        assert found.rows is None or expected.rows is None or found.rows.equals(expected.rows)
        assert found.punctuations == expected.punctuations
        for name, table in operator.tables().items():
            keep(stored[name], table.changes())
    assert operator.state_rows() == through.state_rows() == 0


def keep(stored: tuple[dict[int, Any], dict[int, list[int]]], changes: Any) -> None:
    """What a store does with the changes of a table."""
    segments, dead = stored
    for key in (*changes.put, *changes.dropped):
        segments.pop(key, None)
        dead.pop(key, None)
    segments.update(changes.put)
    for key, places in changes.gone.items():
        dead.setdefault(key, []).extend(places.tolist())


def row(schema: Schema, key: int | None, time: int, **more: Any) -> Row:
    return dict.fromkeys(schema.names) | {"k": key, "ts": time, TS: time} | more


def left(*rows: tuple[int | None, int]) -> Input:
    return Input(frame(LEFT, [row(LEFT, *given) for given in rows]))


def right(*rows: tuple[int | None, int]) -> Input:
    return Input(frame(RIGHT, [row(RIGHT, *given) for given in rows]))


def closing(*patterns: Pattern, progress: int = -FOREVER) -> Input:
    return Input(punctuations=Punctuations.of(patterns, progress) if progress > -FOREVER else Punctuations.of(patterns))


def keys_of(output: Output) -> list[tuple[int | None, int | None, int]]:
    return [] if output.rows is None else output.rows.select("a.k", "b.k", TS).rows()


NO_WINDOWS = (Window(), Window())
NOTHING = Input()


def test_a_tuple_is_padded_when_punctuation_closes_its_key() -> None:
    operator = join(KINDS["LEFT"], KEYS["one"], None, NO_WINDOWS, False)
    assert keys_of(operator.process([left((1, 1), (2, 2), (None, 3)), NOTHING])) == [(None, None, 3)]
    assert keys_of(operator.process([NOTHING, right((1, 4), (3, 4))])) == [(1, 1, 4)]
    out = operator.process([NOTHING, closing(Pattern.of(k=below(3)))])
    assert keys_of(out) == [(2, None, 2)] and operator.state_rows() == 2
    assert out.punctuations is None  # a tuple of the right side with key 1 is stored
    assert keys_of(operator.process([left((1, 9)), NOTHING])) == [(1, 1, 9)]
    assert keys_of(operator.process([left((2, 9)), NOTHING])) == [(2, None, 9)]


def test_a_tuple_is_padded_when_its_window_has_passed() -> None:
    made = Window(range=5), Window(range=5)
    operator = join(KINDS["FULL"], KEYS["one"], None, made, True)
    assert keys_of(operator.process([Input(left((1, 1)).rows, None, 1), Input(bound=2)])) == []
    assert operator.output_bound([6, 6]) == 1
    assert operator.waiting()
    assert keys_of(operator.process([Input(bound=1), Input(bound=6)])) == []
    assert keys_of(operator.process([Input(bound=1), Input(bound=7)])) == [(1, None, 1)]
    assert not operator.waiting()


def test_progress_waits_for_the_oldest_tuple_without_a_partner() -> None:
    made = Window(range=5), Window(range=5)
    operator = join(KINDS["LEFT"], KEYS["one"], None, made, True)
    operator.process([Input(left((1, 1), (2, 3)).rows, None, 3), Input(bound=3)])
    out = operator.process([closing(progress=6), closing(progress=6)])
    assert out.punctuations is not None and out.punctuations.progress == 1
    out = operator.process([Input(bound=6), Input(right((2, 6)).rows, closing(progress=7).punctuations, 7)])
    assert keys_of(out) == [(2, 2, 6), (1, None, 1)]
    assert out.punctuations is not None and out.punctuations.progress == 6


@pytest.mark.parametrize(("kind", "first", "second"), [("LEFT", 1, 0), ("LEFT", 0, 1), ("FULL", 0, 1), ("FULL", 1, 0)])
def test_a_side_that_ends_does_not_end_the_result(kind: str, first: int, second: int) -> None:
    operator = join(KINDS[kind], KEYS["one"], None, NO_WINDOWS, False)
    inputs = [NOTHING, NOTHING]
    inputs[first] = closing(Pattern())
    out = operator.process(inputs)
    early = kind == "LEFT" and first == 0
    assert (out.punctuations is not None) == early
    if not early:
        assert keys_of(operator.process([left((1, 1)), NOTHING] if first else [NOTHING, right((1, 1))]))
    inputs = [NOTHING, NOTHING]
    inputs[second] = closing(Pattern())
    out = operator.process(inputs)
    assert (out.punctuations is not None) == (not early)
    assert early or out.punctuations == Punctuations.of([Pattern()])


def test_punctuation_of_both_sides_goes_out_on_their_own_columns() -> None:
    operator = join(KINDS["FULL"], KEYS["one"], None, NO_WINDOWS, False)
    five = Pattern.of(k=equal(5))
    out = operator.process([closing(five), NOTHING])
    assert out.punctuations == Punctuations.of([Pattern.of({"a.k": equal(5)})])
    assert keys_of(operator.process([NOTHING, right((5, 1))])) == [(None, 5, 1)]
    out = operator.process([NOTHING, closing(five)])
    assert out.punctuations == Punctuations.of([Pattern.of({"b.k": equal(5)})])
