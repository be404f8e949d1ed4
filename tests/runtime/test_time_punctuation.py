"""Punctuation made of time: a copy of the column, and a bound on it for each step in which time advances."""

from __future__ import annotations

import polars as pl

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import below
from millstream.algebra.schema import NEVER, TS, Attribute, Schema, TimeKind
from millstream.algebra.time_limits import own_limits
from millstream.algebra.types import Type
from millstream.algebra.values import decode, encode
from millstream.logical.nodes.scan import Scan
from millstream.logical.nodes.time_punctuation import TimePunctuation as Node
from millstream.runtime.operator.contract import Input
from millstream.runtime.time_punctuation import TimePunctuation

READINGS = Schema.of(("ts", Type.BIGINT), ("k", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")
NODE = Node(Scan("s", READINGS), "ts", "ts~")


def made() -> TimePunctuation:
    return TimePunctuation(**NODE.parameters())


def page(*times: int) -> pl.DataFrame:
    return pl.DataFrame({"ts": [*times], "k": [1] * len(times), TS: [*times]})


def test_a_page_gets_the_copy_before_the_hidden_timestamp() -> None:
    rows = made().process([Input(page(3, 4))]).rows
    assert rows is not None and rows.columns == [*NODE.schema.polars]
    assert rows.get_column("ts~").to_list() == [3, 4]


def test_time_becomes_a_bound_once() -> None:
    one = made()
    assert one.process([Input(page(3), bound=3)]).punctuations == Punctuations.of([Pattern.of({"ts~": below(3)})])
    assert one.process([Input(page(3), bound=3)]).punctuations is None
    told = one.process([Input(None, Punctuations.of([Pattern.of(ts=below(9))], progress=9), bound=3)]).punctuations
    assert told == Punctuations.of([Pattern.of(ts=below(9)), Pattern.of({"ts~": below(9)})], progress=9)


def test_every_value_that_time_has_passed_gets_a_punctuation() -> None:
    one, other = made(), made()
    bounds = Punctuations.from_column("ts~", "<", pl.Series([3, 7, 9]))
    assert one.process([Input(page(3, 7, 7, 9), bound=9)]).punctuations == bounds
    assert one.process([Input(page(12, 15), bound=9)]).punctuations is None
    other.restore_scalars(decode(encode(one.scalars())))
    for each in one, other:
        later = each.process([Input(None, bound=13)]).punctuations
        assert later == Punctuations.from_column("ts~", "<", pl.Series([12, 13]))
        assert each.scalars()["values"] == Punctuations.from_column("ts~", "<", pl.Series([15]))


def test_a_restored_operator_does_not_repeat_itself() -> None:
    one, other = made(), made()
    one.process([Input(page(3), bound=3)])
    other.restore_scalars(decode(encode(one.scalars())))
    assert other.process([Input(None, bound=3)]).punctuations is None
    assert other.process([Input(None, bound=4)]).punctuations == Punctuations.of([Pattern.of({"ts~": below(4)})])


def test_a_column_that_follows_time_is_closed_up_to_its_own_value() -> None:
    ends = Schema((Attribute("end", Type.BIGINT),), TimeKind.EXTERNAL, None, 1, offsets=(("end", 1),))
    (limit,) = own_limits(ends.trails, ["end"])
    assert str(limit) == "end < (__ts + 1)"
    node = Node(Scan("w", ends), "end", "end~")
    closed = TimePunctuation(**node.parameters()).process([Input(None, bound=9)]).punctuations
    assert closed == Punctuations.of([Pattern.of({"end~": below(10)})], NEVER)
