"""Placeholders: every tuple is whole on one shard, and everywhere at its place and time."""

from __future__ import annotations

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import below
from millstream.algebra.schema import Schema, TimeKind
from millstream.algebra.types import Type
from millstream.logical.nodes.scan import Scan
from millstream.physical.plan.operators import build
from millstream.physical.plan.placeholders import Placeholders
from millstream.runtime.operator.contract import NOTHING, Input
from millstream.runtime.operator.registry import Site
from tests.tries import tries

TIMED = Schema.of(("k", Type.BIGINT), ("name", Type.VARCHAR), ("ts", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")
ENTERED = Schema.of(("k", Type.BIGINT), ("name", Type.VARCHAR), kind=TimeKind.INTERNAL)
keys = st.lists(st.one_of(st.none(), st.integers(0, 9)), min_size=1, max_size=20)


@settings(max_examples=tries(60))
@given(keys, st.integers(1, 4), st.sampled_from([TIMED, ENTERED]))
def test_every_tuple_is_whole_on_one_shard(given_keys: list[int | None], shards: int, schema: Schema) -> None:
    times = [(at, at) if schema.time else (at,) for at in range(len(given_keys))]
    rows = [(key, f"n{at}", *time) for at, (key, time) in enumerate(zip(given_keys, times, strict=True))]
    page = pl.DataFrame(rows, schema=schema.polars, orient="row")
    plan = Placeholders(Scan("s", schema), ("k",))
    made = [build(plan, Site({}, number, shards)).process([Input(page)]).rows for number in range(shards)]
    for at, (row, time) in enumerate(zip(rows, times, strict=True)):
        found = [frame.row(at) for frame in made if frame is not None]
        assert found.count(row) == 1 and found.count((None, None, *time)) == shards - 1


def test_punctuation_goes_through() -> None:
    operator = build(Placeholders(Scan("s", TIMED), ("k",)), Site({}, 1, 2))
    said = Punctuations.of([Pattern.of(ts=below(5))])
    out = operator.process([Input(punctuations=said)])
    assert out.rows is None and out.punctuations is said
    assert operator.process([Input()]) == NOTHING
