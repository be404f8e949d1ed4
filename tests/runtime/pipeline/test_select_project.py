"""Selection and projection against one tuple, and one punctuation, at a time."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.expression import Binary, Call, Column, Expression, Literal
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import below, equal
from millstream.algebra.schema import TS, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.values import decode, encode
from millstream.runtime.operator.contract import Input
from millstream.runtime.pipeline.project import Project
from millstream.runtime.pipeline.select import Select
from tests.reference.evaluate import evaluate
from tests.reference.project import Rising, projected
from tests.runtime.driving import bag, frame
from tests.runtime.ports import LEFT, arrivals, covered, cuts, run, steps
from tests.tries import tries

L = Type.BIGINT
TSC, K, X = Column(L, "ts"), Column(L, "k"), Column(L, "x")
NEXT, TWICE = Binary(L, "+", TSC, Literal(L, 5)), Binary(L, "*", K, Literal(L, 2))
TENS = Call(Type.DOUBLE, "FLOOR", (Binary(Type.DOUBLE, "/", TSC, Literal(L, 10)),))
PREDICATES: list[Expression] = [
    Binary(Type.BOOLEAN, "<", K, X),
    Binary(Type.BOOLEAN, "OR", Binary(Type.BOOLEAN, "=", K, Literal(L, 1)), Binary(Type.BOOLEAN, ">", X, K)),
    Literal(Type.BOOLEAN, True),
    Literal(Type.NULL, None),
]
ITEMS: list[tuple[tuple[str, Expression], ...]] = [
    (("k", K), ("t", TSC)),
    (("sum", Binary(L, "+", K, X)), ("key", K), ("again", K)),
    (("one", Literal(L, 1)),),
    (("x", X), ("k", K), ("ts", TSC), ("h", Column(L, TS))),
    (("x", X),),
    (("t", NEXT), ("k", K)),
    (("tens", TENS), ("k", K), ("none", Binary(L, "-", Literal(L, 1), X))),
    (("k2", TWICE), ("t", TSC)),
]
RISING: dict[str, Rising] = {
    "t": {"ts": ("t", NEXT, True)},
    "tens": {"ts": ("tens", TENS, False)},
}
"""By the name of the first item; only columns that follow time are translated."""
GROUPS = [(), (("k", "x"),), (("x", "k"),)]


def output(items: tuple[tuple[str, Expression], ...]) -> Schema:
    return Schema.of(*((name, item.type) for name, item in items), kind=TimeKind.EXTERNAL)


@settings(max_examples=tries(60))
@given(arrivals(ordered=False, others=("x",)), cuts, st.sampled_from(PREDICATES))
def test_select(given: Any, cut: Any, predicate: Expression) -> None:
    trace = run(Select(LEFT, predicate), steps(given, [LEFT], False, None, cut), [LEFT])
    rows = [element for _, element in given if isinstance(element, dict)]
    assert trace.rows == [row for row in rows if evaluate(predicate, row) is True]
    assert trace.punctuations == [element for _, element in given if isinstance(element, Pattern)]


@settings(max_examples=tries(60))
@given(arrivals(ordered=False, others=("x",)), cuts, st.sampled_from(ITEMS), st.sampled_from(GROUPS))
def test_project(given: Any, cut: Any, items: Any, equal_columns: Any) -> None:
    if equal_columns:  # then they have to be equal
        given = [(port, e | {"x": e["k"]} if isinstance(e, dict) else e) for port, e in given]
        patterns = [e for _, e in given if isinstance(e, Pattern)]
        given = [(p, e) for p, e in given if not isinstance(e, dict) or not any(q.matches(e) for q in patterns)]
    operator = Project(LEFT, output(items), items, equal_columns)
    trace = run(operator, steps(given, [LEFT], False, None, cut), [LEFT])
    expected_rows, expected_patterns = [], []
    for _, element in given:
        if isinstance(element, dict):
            expected_rows.append({name: evaluate(item, element) for name, item in items} | {TS: element[TS]})
        elif isinstance(element, Pattern):
            made = projected(element, items, equal_columns, RISING.get(items[0][0]))
            if made is not None and not made.is_empty and not covered(made, expected_patterns):
                expected_patterns.append(made)
    assert bag(trace.rows) == bag(expected_rows)
    assert Counter(trace.punctuations) == Counter(expected_patterns)


def test_progress_outlives_its_punctuation() -> None:
    operator = Project(LEFT, output(ITEMS[4]), ITEMS[4])
    told = Punctuations.of([Pattern.of(ts=below(7))], 7)
    out = operator.process([Input(punctuations=told)])
    assert out.punctuations is not None and not len(out.punctuations) and out.punctuations.progress == 7


def test_a_column_that_is_gone_speaks_through_an_equal_one() -> None:
    items = (("b_k", X), ("t", TSC))
    operator = Project(LEFT, output(items), items, (("k", "x"),))
    out = operator.process([Input(punctuations=Punctuations.of([Pattern.of(k=equal(3)), Pattern.of(x=equal(3))]))])
    assert out.punctuations is not None and out.punctuations.patterns() == [Pattern.of(b_k=equal(3))]
    restored = Project(LEFT, output(items), items, (("k", "x"),))
    restored.restore_scalars(decode(encode(operator.scalars())))
    assert restored.process([Input(punctuations=Punctuations.of([Pattern.of(k=equal(3))]))]).punctuations is None


def test_nothing_in_nothing_out() -> None:
    assert Select(LEFT, PREDICATES[0]).process([Input()]).rows is None
    empty = frame(LEFT, [])
    out = Project(LEFT, output(ITEMS[1]), ITEMS[1]).process([Input(empty)])
    assert out.rows is None or out.rows.height == 0
