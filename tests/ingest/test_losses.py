"""What a source finds out about its late and bad rows: causes, delays, examples."""

from __future__ import annotations

from functools import reduce
from operator import add

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.algebra.clock import VirtualClock
from millstream.algebra.schema import Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.values import decode, encode
from millstream.ingest.losses import KINDS, Losses, bad_rows
from millstream.ingest.source import StreamSource
from millstream.logical.catalog import StreamDefinition

TIMED = Schema.of(("ts", Type.BIGINT), ("k", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")


def source(watermark: int | None = None, **options: object) -> StreamSource:
    schema = TIMED if watermark is None else Schema(TIMED.attributes, TIMED.kind, TIMED.time, TIMED.unit, ordered=False)
    return StreamSource(StreamDefinition("s", schema, watermark, **options), VirtualClock())  # type: ignore[arg-type]


def taken(from_: StreamSource, *batches: list[tuple[int, int]]) -> Losses:
    found = Losses()
    for batch in batches:
        from_.take([batch])
        found += from_.take_losses()
    return found


def reference(stamps: list[int]) -> tuple[list[int], int]:
    """The delays of the late rows, one by one, and the number of runs."""
    delays, runs, newest = [], 0, None
    for at, stamp in enumerate(stamps):
        if newest is not None and stamp < newest:
            delays.append(newest - stamp)
            runs += stamp < stamps[at - 1]
        newest = stamp if newest is None else max(newest, stamp)
    return delays, runs


@given(st.lists(st.lists(st.integers(0, 1000), min_size=1, max_size=12), min_size=1, max_size=6))
def test_the_longest_delay_is_the_watermark_that_accepts_all(batches: list[list[int]]) -> None:
    stamps = [stamp for batch in batches for stamp in batch]
    given_batches = [[(stamp, 0) for stamp in batch] for batch in batches]
    delays, _ = reference(stamps)
    found = taken(source(), *given_batches)
    assert (found.rows, found.late) == (len(stamps), len(delays))
    assert found.longest == max(delays, default=0) and sum(found.delays.values()) == len(delays)
    assert found.causes == ({"order": len(delays)} if delays else {})
    assert taken(source(watermark=found.longest), *given_batches).late == 0
    if delays:
        assert found.oldest is not None and found.oldest[1] - found.oldest[0] == found.longest
        assert taken(source(watermark=found.longest - 1), *given_batches).late > 0
        covered = found.delay_of(0.99)
        assert sum(delay > covered for delay in delays) <= 0.01 * len(delays)
        assert found.delay_of(1) == found.longest


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.integers(1, 40))
def test_cuts_change_nothing_but_where_runs_begin(stamps: list[int], size: int) -> None:
    rows = [(stamp, 0) for stamp in stamps]
    whole = taken(source(), rows)
    pieces = taken(source(), *(rows[at : at + size] for at in range(0, len(rows), size)))
    assert whole.runs == reference(stamps)[1]
    assert (whole.causes, whole.delays, whole.longest) == (pieces.causes, pieces.delays, pieces.longest)
    assert whole.runs <= pieces.runs


def test_a_file_with_the_newest_row_first_is_one_run() -> None:
    found = taken(source(), [(10_000, 0)], [(ts, 0) for ts in range(9_000)])
    assert (found.late, found.runs, found.longest) == (9_000, 1, 10_000)


def test_causes() -> None:
    keyed = source(watermark=100, primary_key=("k",))
    assert taken(keyed, [(1, 1), (2, 1), (3, 2)], [(4, 2)]).causes == {"key": 2}
    rising = source(watermark=100, ascending=("k",))
    assert taken(rising, [(1, 5), (2, 4), (3, 6)]).causes == {"ascending": 1}
    closed = source(watermark=100)
    closed.take(["1 | 7", "[*, 7]", "2 | 7", "3 | 8"])
    assert closed.take_losses().causes == {"punctuation": 1}
    skewed = source(max_skew=0)
    skewed.take([[(5, 0)]])
    skewed._clock.advance(10_000_000)  # type: ignore[attr-defined]
    assert skewed.ets() == 15
    skewed.take([[(9, 0)]])
    assert skewed.take_losses().causes == {"skew": 1}


def test_kinds_of_bad_rows() -> None:
    bad = ["1 | x", "2 | y", "1", "3 | 99999999999999999999", "a | 1"]
    fed = source()
    fed.take([*bad, "1 | 1"])
    found = fed.take_losses()
    assert (found.bad, found.accepted) == (5, 1)
    most = found.reasons["column 'k': a value is not a value of type BIGINT"]
    assert (most.number, most.input) == (2, "1 | x") and "'x'" in most.reason
    assert len(found.reasons) == 4 and decode(encode(found)) == found


def test_many_kinds_of_bad_rows_are_not_all_kept() -> None:
    frames = [pl.DataFrame({"input": ["x"], "reason": [f"reason {n}"]}) for n in range(100)]
    found = reduce(add, map(bad_rows, [*frames, frames[0], frames[0]]))
    assert len(found.reasons) <= KINDS


def test_losses_are_counted_from_the_last_report_on() -> None:
    first = source()
    first.take([[(5, 0), (1, 0)]])
    again = source()
    again.restore(first.snapshot())
    assert again.late == 1 and again.take_losses() == Losses()
    again.take([[(2, 0)]])
    assert (again.take_losses().late, again.take_losses().late) == (1, 0)


@pytest.mark.parametrize("share", [0.5, 0.99, 1.0])
def test_no_delay_without_late_rows(share: float) -> None:
    assert Losses().delay_of(share) == 0
