"""Union against its reference, and worked example W3."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import below, equal
from millstream.algebra.schema import FOREVER, TS, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.values import decode, encode
from millstream.runtime.operator.contract import Input
from millstream.runtime.union import Union
from tests.reference.union import ReferenceUnion
from tests.runtime.driving import bag, frame
from tests.runtime.ports import arrivals, cuts, in_order, run, same_promises, steps
from tests.tries import tries

COLUMNS = ("x", "y", "z")
MEMBERS = tuple(
    Schema.of(("ts", Type.BIGINT), ("k", Type.BIGINT), (n, Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")
    for n in COLUMNS
)
NAMES = [dict(zip(member.names, MEMBERS[0].names, strict=True)) for member in MEMBERS]


def check(given_arrivals: Any, cut: Any, merges: bool, count: int) -> None:
    members = MEMBERS[:count]
    operator, model = Union(MEMBERS[0], members, merges), ReferenceUnion(NAMES[:count], "ts")
    assert operator.arity == count
    for step in steps(given_arrivals, members, merges, None):
        for port, row in in_order(step, merges, rank=range(count)):
            model.row(port, row)
        for port, portion in enumerate(step):
            for pattern in portion.patterns:
                model.punctuation(port, pattern)
            model.bound(port, max(portion.bound, portion.progress))
    trace = run(operator, steps(given_arrivals, members, merges, None, cut), members)
    assert bag(trace.rows) == bag(model.out_rows)
    if merges:
        assert [row[TS] for row in trace.rows] == sorted(row[TS] for row in trace.rows)
    assert same_promises(trace.punctuations, model.out_patterns), (trace.punctuations, model.out_patterns)


@settings(max_examples=tries(60))
@given(st.data(), cuts, st.sampled_from([2, 2, 3]))
def test_merging(data: st.DataObject, cut: Any, count: int) -> None:
    check(data.draw(arrivals(ordered=True, others=COLUMNS[:count], size=30)), cut, True, count)


@settings(max_examples=tries(60))
@given(st.data(), cuts, st.sampled_from([2, 2, 3]))
def test_latent(data: st.DataObject, cut: Any, count: int) -> None:
    check(data.draw(arrivals(ordered=False, others=COLUMNS[:count], size=30)), cut, False, count)


def tuples(port: int, times: list[int]) -> Any:
    return [{"ts": t, "k": port, COLUMNS[port]: i, TS: t} for i, t in enumerate(times)]


def test_worked_example_w3_simultaneous_tuples_all_flow() -> None:
    operator = Union(MEMBERS[0], MEMBERS[:2], True)
    given = [(0, row) for row in tuples(0, [5, 5])] + [(1, row) for row in tuples(1, [5, 5])]
    trace = run(operator, steps(given, MEMBERS[:2], True, None, [False]), MEMBERS[:2])
    assert [(row["k"], row["x"]) for row in trace.rows] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_promises_wait_for_the_others_also_across_a_restart() -> None:
    operator = Union(MEMBERS[0], MEMBERS[:2], False)
    closed = Punctuations.of([Pattern.of(k=equal(1)), Pattern.of(x=equal(2))])
    assert operator.process([Input(punctuations=closed), Input()]).punctuations is None
    restored = Union(MEMBERS[0], MEMBERS[:2], False)
    restored.restore_scalars(decode(encode(operator.scalars())))
    out = restored.process([Input(), Input(punctuations=Punctuations.of([Pattern.of(k=below(5))]))])
    assert out.punctuations is not None and out.punctuations.patterns() == [Pattern.of(k=equal(1))]
    out = restored.process([Input(), Input(punctuations=Punctuations.of([Pattern.of(y=equal(2))]))])
    assert out.punctuations is not None and out.punctuations.patterns() == [Pattern.of(x=equal(2))]


def test_an_input_that_has_ended_holds_nothing_back() -> None:
    operator = Union(MEMBERS[0], MEMBERS[:2], True)
    closed = Punctuations.of([Pattern.of(k=equal(1))])
    assert operator.process([Input(punctuations=closed), Input()]).punctuations is None
    out = operator.process([Input(), Input(bound=FOREVER)])
    assert out.punctuations is not None and out.punctuations.patterns() == [Pattern.of(k=equal(1))]


def test_progress_is_the_lowest_of_all() -> None:
    operator = Union(MEMBERS[0], MEMBERS[:2], True)
    assert operator.process([Input(punctuations=Punctuations.of((), 9)), Input(bound=4)]).punctuations is not None
    out = operator.process([Input(), Input(frame(MEMBERS[1], tuples(1, [6])), Punctuations.of((), 6))])
    assert out.punctuations is not None and out.punctuations.progress == 6
