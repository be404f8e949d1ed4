"""LIMIT against its reference, and its end."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.feedback import Feedback, Intent
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import FOREVER, TS, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.logical.nodes import limit as node
from millstream.logical.nodes.scan import Scan
from millstream.runtime.limit import Limit
from millstream.runtime.operator.contract import Input
from tests.reference import plan as reference
from tests.runtime.driving import Element, cuts, drive, elements, frame, steps
from tests.tries import tries

READINGS = Schema.of(
    ("ts", Type.BIGINT), ("g", Type.BIGINT), ("v", Type.BIGINT), ("w", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts"
)


@settings(max_examples=tries(40))
@given(items=elements(), cut=cuts, count=st.integers(1, 12))
def test_limit_equals_the_reference(items: list[Element], cut: list[bool], count: int) -> None:
    rows = [(item, item[TS]) for item in items if isinstance(item, dict)]
    expected = reference.limit(node.Limit(Scan("s", READINGS), count), rows)
    trace = drive(steps(items, cut, READINGS, "ts"), Limit(READINGS, count))
    assert trace.rows == [row for row, _ in expected]
    assert (Pattern() in trace.punctuations) == (len(rows) >= count)


def test_the_last_tuple_ends_the_stream() -> None:
    row = {"ts": 1, "g": 1, "v": 1, "w": 1, TS: 1}
    operator = Limit(READINGS, 2)
    assert not operator.process([Input(frame(READINGS, [row]))]).upstream
    restored = Limit(READINGS, 2)
    restored.restore_scalars(operator.scalars())
    output = restored.process([Input(frame(READINGS, [row, row]))])
    assert output.rows is not None and output.rows.height == 1
    assert output.punctuations is not None and output.punctuations.progress == FOREVER
    assert output.upstream == ((0, Feedback(Intent.ASSUMED, Pattern())),)
    assert restored.output_bound([5]) == FOREVER
    assert restored.process([Input(frame(READINGS, [row]))]).rows is None
