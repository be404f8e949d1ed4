"""Duplicate elimination against its tuple-at-a-time reference."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings

from millstream.algebra.element import Page
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import below, equal
from millstream.algebra.schema import NEVER, TS, Attribute, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.values import decode, encode
from millstream.runtime.distinct import Distinct
from millstream.runtime.operator.contract import Input
from millstream.runtime.sink import CollectingSink
from tests.reference.distinct import DistinctReference
from tests.runtime.driving import Element, bag, cuts, drive, elements, frame, grammatical, progress_of, steps
from tests.tries import tries

READINGS = Schema.of(
    ("ts", Type.BIGINT), ("g", Type.BIGINT), ("v", Type.BIGINT), ("w", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts"
)
NARROW = READINGS.with_attributes([Attribute("g", Type.BIGINT), Attribute("v", Type.BIGINT)])


def again(items: list[Element]) -> list[Element]:
    """The stream with tuples repeated, at once and some elements later, where it stays grammatical."""
    made: list[Element] = []
    for at, item in enumerate(items):
        made += [item, items[at - at % 4]]
    return grammatical(made, "ts")


@pytest.mark.parametrize("schema", [READINGS, NARROW], ids=["with time", "without time"])
@settings(max_examples=tries(30))
@given(items=elements(), cut=cuts)
def test_distinct_equals_the_reference(schema: Schema, items: list[Element], cut: list[bool]) -> None:
    reference = DistinctReference(schema.names, schema.time)
    kept: list[Any] = []
    for item in again(items):
        if isinstance(item, dict):
            row = {name: item[name] for name in schema.polars} if schema is NARROW else item
            kept.append(row)
            reference.tuple_(row)
        elif isinstance(item, Pattern):
            if item.attributes <= set(schema.names):
                kept.append(item)
                reference.bound(progress_of(item, schema.time))
                reference.punctuation(item)
        else:
            kept.append(item)
            reference.bound(item)
    one = Distinct(schema)
    got = drive(steps(kept, cut, schema, schema.time), one)
    assert got.bags() == (bag(reference.rows), Counter(reference.punctuations))
    assert one.state_rows() == len(reference.state)


def test_null_equals_null_and_the_first_timestamp_goes_out() -> None:
    one = Distinct(NARROW)
    page = frame(NARROW, [{"g": 1, "v": None, TS: 5}, {"g": 1, "v": None, TS: 4}, {"g": None, "v": None, TS: 6}])
    assert one.process([Input(page)]).rows.rows() == [(1, None, 5), (None, None, 6)]  # type: ignore[union-attr]
    assert one.process([Input(page)]).rows is None
    assert one.state_rows() == 2


def test_state_survives_a_restart() -> None:
    one, page = Distinct(READINGS), frame(READINGS, [{"ts": 5, "g": 1, "v": 1, "w": None, TS: 5}])
    one.process([Input(page, Punctuations.of([Pattern.of(g=equal(9))]))])
    two = Distinct(READINGS)
    two.tables()["seen"].append(one.tables()["seen"].frame())
    two.restore_scalars(decode(encode(one.scalars())))
    again = two.process([Input(page, Punctuations.of([Pattern.of(g=equal(9))]))])
    assert again.rows is None and again.punctuations is None
    two.process([Input(None, Punctuations.of([Pattern.of(ts=below(6))], 6))])
    assert two.state_rows() == 0 and one.state_rows() == 1


def test_a_sink_gives_what_came_since_the_last_call() -> None:
    sink = CollectingSink(NARROW)
    sink(Page(frame(NARROW, [{"g": 1, "v": None, TS: 5}])))
    sink(Punctuations.of([Pattern.of(g=equal(1))], NEVER))
    sink(Punctuations.of([], 7))
    assert sink.take_rows().rows() == [(1, None, 5)]
    assert sink.take_punctuations() == [Pattern.of(g=equal(1))]
    assert sink.take_rows().schema == NARROW.polars and sink.take_punctuations() == []
