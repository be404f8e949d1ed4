"""INSTRUMENT: what it passes on, and how often it sends."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import equal
from millstream.algebra.schema import TS
from millstream.logical.nodes import instrument as node
from millstream.logical.nodes.scan import Scan
from millstream.runtime.instrument import Instrument
from tests.reference import plan as reference
from tests.runtime.driving import Element, cuts, drive, elements, steps
from tests.runtime.test_limit import READINGS
from tests.tries import tries


@settings(max_examples=tries(40))
@given(elements(), cuts, st.none() | st.integers(1, 5), st.booleans())
def test_tuples_and_messages(items: list[Element], cut: list[bool], every: int | None, sends: bool) -> None:
    plan = node.Instrument(Scan("s", READINGS), "~", Pattern.of(g=equal(1)), every, sends)
    rows = [(item, item[TS]) for item in items if isinstance(item, dict)]
    given_steps, operator = steps(items, cut, READINGS, "ts"), Instrument(**plan.parameters())
    assert drive(given_steps, operator).rows == [row for row, _ in reference.instrument(plan, rows)]
    counted = Instrument(**plan.parameters())
    sent = [message for step in given_steps for message in counted.process([step]).upstream]
    assert len(sent) == (0 if every is None or not sends else len(rows) // every)
