"""RECENT and CHRONICLE against their reference, and the worked examples."""

from __future__ import annotations

from typing import Any

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
from millstream.runtime.operator.contract import Input
from millstream.runtime.sequence import Chronicle, Recent, SequenceJoin
from tests.reference.evaluate import evaluate
from tests.reference.sequence import ReferenceSequence
from tests.runtime.driving import Row, bag, frame
from tests.runtime.ports import LEFT, RIGHT, Arrival, arrivals, cuts, in_order, run, same_promises, steps
from tests.tries import tries

NAMES = ({n: f"a.{n}" for n in LEFT.names}, {n: f"b.{n}" for n in RIGHT.names})
OUTPUT = Schema(
    tuple(Attribute(NAMES[i][a.name], a.type) for i, s in enumerate((LEFT, RIGHT)) for a in s), TimeKind.EXTERNAL
)
SCHEMAS = (LEFT, RIGHT)
RESIDUAL = Binary(Type.BOOLEAN, "<=", Column(Type.BIGINT, "a.x"), Column(Type.BIGINT, "b.y"))
MODES: dict[str, type[SequenceJoin]] = {"RECENT": Recent, "CHRONICLE": Chronicle}
keys = st.sampled_from([(), (("k", "k"),), (("k", "k"),), (("k", "k"), ("x", "y"))])
modes = st.sampled_from(sorted(MODES))


def check(given_arrivals: Any, cut: Any, mode: str, key: Any, residual: Expression | None) -> SequenceJoin:
    operator = MODES[mode](LEFT, RIGHT, OUTPUT, key, residual)
    model = ReferenceSequence(mode, NAMES, key, lambda row: True if residual is None else evaluate(residual, row))
    for step in steps(given_arrivals, SCHEMAS, True, operator.tie_order):
        for port, row in in_order(step, True, rank=(1, 0)):
            model.row(port, row)
        for port, portion in enumerate(step):
            for pattern in portion.patterns:
                model.punctuation(port, pattern)
            model.bound(port, portion.bound)
    trace = run(operator, steps(given_arrivals, SCHEMAS, True, operator.tie_order, cut), SCHEMAS)
    assert trace.rows == model.out_rows
    assert same_promises(trace.punctuations, model.out_patterns), (trace.punctuations, model.out_patterns)
    back = {new: old for old, new in NAMES[0].items()} | {TS: TS}
    held = [{back[n]: v for n, v in row.items()} for row in operator.table.frame().to_dicts()]
    assert bag(held) == bag(model.stored)
    return operator


@settings(max_examples=tries(100))
@given(arrivals(ordered=True, size=30), cuts, modes, keys, st.sampled_from([None, None, RESIDUAL]))
def test_against_the_reference(given: Any, cut: Any, mode: str, key: Any, residual: Any) -> None:
    check(given, cut, mode, key, residual)


@settings(max_examples=tries(100))
@given(arrivals(ordered=True, size=40, narrow=True, silent=False), cuts, modes)
def test_many_tuples_of_few_keys(given: Any, cut: Any, mode: str) -> None:
    check(given, cut, mode, (("k", "k"),), None)


@settings(max_examples=tries(40))
@given(arrivals(ordered=True), cuts, modes, st.booleans())
def test_nothing_is_held_when_everything_is_closed(given: Any, cut: Any, mode: str, end: bool) -> None:
    operator = check(given, cut, mode, (("k", "k"),), None)
    closing = Input(bound=FOREVER) if end else Input(punctuations=Punctuations.of([Pattern.of(k=below(99))]))
    operator.process([Input(), closing])
    assert operator.state_rows() == 0
    assert not operator.scalars()["pending"]


@settings(max_examples=tries(40))
@given(arrivals(ordered=True), cuts, modes, st.integers(0, 12))
def test_restored(given: Any, cut: Any, mode: str, when: int) -> None:
    through, operator = (MODES[mode](LEFT, RIGHT, OUTPUT, (("k", "k"),)) for _ in range(2))
    for index, step in enumerate(steps(given, SCHEMAS, True, (1, 0), cut)):
        if index == when:
            old, operator = operator, MODES[mode](LEFT, RIGHT, OUTPUT, (("k", "k"),))
            operator.restore_scalars(decode(encode(old.scalars())))
            operator.table.replace(old.table.frame())
        inputs = [portion.input(schema) for portion, schema in zip(step, SCHEMAS, strict=True)]
        expected, found = through.process(inputs), operator.process(inputs)
        assert (found.rows is None) == (expected.rows is None)
        assert found.rows is None or found.rows.equals(expected.rows)
        assert found.punctuations == expected.punctuations


def tuples(port: int, times: list[int]) -> list[Arrival]:
    schema = SCHEMAS[port]
    return [(port, dict.fromkeys(schema.names) | {"ts": time, TS: time}) for time in times]


CASES, PRODUCTS = tuples(0, [1, 4, 5]), tuples(1, [2, 3, 6, 7, 8])


def pairs(rows: list[Row]) -> list[tuple[int, int]]:
    return [(row["a.ts"], row["b.ts"]) for row in rows]


@pytest.mark.parametrize(
    ("mode", "early", "late", "held"),
    [
        ("RECENT", [(1, 2), (1, 3)], [(5, 6), (5, 7), (5, 8)], 1),
        ("CHRONICLE", [(1, 2)], [(4, 6), (5, 7)], 0),
    ],
)
def test_worked_examples_w9_and_w10(mode: str, early: Any, late: Any, held: int) -> None:
    operator = MODES[mode](LEFT, RIGHT, OUTPUT)
    before = run(MODES[mode](LEFT, RIGHT, OUTPUT), steps([*CASES, *PRODUCTS], SCHEMAS, True, (1, 0)), SCHEMAS)
    assert pairs(before.rows) == early
    trace = run(operator, steps([*CASES, *PRODUCTS, (0, 100)], SCHEMAS, True, (1, 0)), SCHEMAS)
    assert pairs(trace.rows) == early + late
    assert operator.state_rows() == held


def test_worked_example_w11_a_late_case_is_waited_for() -> None:
    given = [*tuples(0, [1]), *tuples(1, [12]), *tuples(0, [10]), (0, 13)]
    trace = run(Recent(LEFT, RIGHT, OUTPUT), steps(given, SCHEMAS, True, (1, 0)), SCHEMAS)
    assert pairs(trace.rows) == [(10, 12)]


def test_worked_example_w12_a_tie_goes_to_the_case_that_waits() -> None:
    operator = Recent(LEFT, RIGHT, OUTPUT)
    given = [*tuples(0, [1, 5]), *tuples(1, [5]), (1, 6)]
    trace = run(operator, steps(given, SCHEMAS, True, (1, 0)), SCHEMAS)
    assert pairs(trace.rows) == [(1, 5)]
    assert operator.table.frame()["a.ts"].to_list() == [5]


def test_a_product_is_used_up_by_an_empty_window() -> None:
    operator = Chronicle(LEFT, RIGHT, OUTPUT)
    out = operator.process([Input(), Input(frame(RIGHT, [row for _, row in PRODUCTS if isinstance(row, dict)]))])
    assert out.rows is None and operator.state_rows() == 0
