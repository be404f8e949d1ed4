"""State tables against a plain list of rows, what they tell a store, and what a store gives back."""

from __future__ import annotations

from itertools import pairwise
from math import log2
from operator import itemgetter
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.runtime.state import table as state
from millstream.runtime.state.segments import to_merge
from millstream.runtime.state.table import Changes, StateTable
from tests.tries import tries

SCHEMA = {"n": pl.Int64(), "s": pl.String()}
Rows = list[tuple[Any, ...]]
rows = st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["a", "b", None])), max_size=12)
ascending = rows.map(lambda made: sorted(made, key=itemgetter(0)))
actions = st.one_of(
    st.tuples(st.just("append"), rows | ascending),
    st.tuples(st.just("below"), st.integers(0, 10)),
    st.tuples(st.just("keep"), st.integers(0, 6)),
    st.tuples(st.just("purge"), st.integers(0, 9)),
    st.tuples(st.just("first"), st.integers(0, 9)),
    st.tuples(st.just("replace"), rows),
    st.tuples(st.just("frame"), st.none()),
    st.tuples(st.just("checkpoint"), st.none()),
)
LIMITS = [
    {"COMPACT_SEGMENTS": state.COMPACT_SEGMENTS},
    {"COMPACT_SEGMENTS": 3, "ONE_CHUNK_ROWS": 6, "FEW_ROWS": 4},
    {"COMPACT_SEGMENTS": 9, "ONE_CHUNK_ROWS": 6, "FEW_ROWS": 0, "PAGE_ROWS": 6},
]


def frame(made: Rows) -> pl.DataFrame:
    return pl.DataFrame(made, schema=SCHEMA, orient="row")


def numbers(count: int, start: int = 0) -> pl.DataFrame:
    return pl.DataFrame({"n": np.arange(start, start + count)}).with_columns(s=pl.lit("x"))


def purge(table: StateTable, gone: pl.Expr) -> None:
    """Remove the rows for which an expression is true."""
    table.keep(table.frame().with_columns((~gone).alias("kept"))["kept"])


class Store:
    """What a host keeps of a table."""

    def __init__(self) -> None:
        self.segments: dict[int, pl.DataFrame] = {}
        self.gone: dict[int, np.ndarray] = {}
        self.put_rows = self.dead_rows = 0

    def copy(self) -> Store:
        made = Store()
        made.segments, made.gone = dict(self.segments), dict(self.gone)
        return made

    def write(self, changes: Changes) -> None:
        assert not changes.put.keys() & changes.gone.keys()
        assert not changes.dropped & (changes.put.keys() | changes.gone.keys())
        assert changes.dropped <= self.segments.keys()
        assert all(segment.height for segment in changes.put.values())
        for key in changes.dropped | changes.put.keys():
            self.segments.pop(key, None)
            self.gone.pop(key, None)
        self.segments |= changes.put
        for key, places in changes.gone.items():
            assert places.dtype == np.uint32
            assert len(places)
            self.gone[key] = made = np.concatenate([self.gone.get(key, places[:0]), places])
            assert len(made) <= self.segments[key].height / 2
            assert len(made) > 1000 or len(np.unique(made)) == len(made)
        self.put_rows += sum(segment.height for segment in changes.put.values())
        self.dead_rows += sum(map(len, changes.gone.values()))

    def table(self) -> StateTable:
        made = StateTable(SCHEMA)
        made.append(frame([(0, "forgotten")]))
        made.restore(self.segments, self.gone)
        assert not made.changes()
        return made


def act(table: StateTable, action: str, value: Any, model: Rows) -> Rows:
    """Do it to the table and to the model; returns the model."""
    if action == "append":
        table.append(frame(value).select("s", "n"))
        return [*model, *value]
    if action == "below":
        value = min((row[0] for row in model), default=0) + value // 3
        gone = [row for row in model if row[0] < value]
        assert table.purge_below("n", value) == len(gone)
        return [row for row in model if row[0] >= value]
    if action == "keep":
        mask = [row[0] % 7 != value for row in model]
        table.keep(pl.Series(mask, dtype=pl.Boolean))
        return [row for row, kept in zip(model, mask, strict=True) if kept]
    if action == "purge":
        purge(table, pl.col("n") % 10 == value)
        return [row for row in model if row[0] % 10 != value]
    if action == "first":
        assert table.take_first(value).rows() == model[:value]
        return model[value:]
    if action == "replace":
        table.replace(frame(value))
        return list(value)
    assert action == "frame"
    assert table.frame().rows() == model
    return model


def check(given: list[tuple[str, Any]], clock: bool, at_once: bool, limits: dict[str, int]) -> None:
    """Every table restored from the store goes on beside the one it is a copy of, with a store of its own."""
    table, store, model = StateTable(SCHEMA), Store(), []
    twins: list[tuple[StateTable, Store]] = []
    if at_once:
        table.track()
    time = 0
    with patch.multiple(state, **limits):
        for action, value in given:
            if action == "checkpoint":
                for one, its_store in [(table, store), *twins]:
                    its_store.write(one.changes())
                    copy = its_store.table()
                    assert len(copy) == len(model)
                    assert copy.frame().rows() == model
                    assert not one.changes()
                twins = [*twins[-1:], (store.table(), store.copy())]
                continue
            if action == "append" and clock:  # rows that never fall, as ordered streams bring them
                value = [(time + number, text) for number, text in sorted(value, key=itemgetter(0))]
                time = value[-1][0] if value else time
            for one, _ in twins:
                act(one, action, value, model)
            model = act(table, action, value, model)
            assert all(len(one) == len(model) for one, _ in [(table, store), *twins])
    assert all(one.frame().rows() == model for one, _ in [(table, store), *twins])


@settings(max_examples=tries(100))
@given(st.lists(actions, max_size=60), st.booleans(), st.booleans(), st.sampled_from(LIMITS))
def test_against_a_list_and_from_a_store(
    given: list[tuple[str, Any]], clock: bool, at_once: bool, limits: dict[str, int]
) -> None:
    check(given, clock, at_once, limits)


@settings(max_examples=tries(30))
@given(st.integers(0), st.booleans(), st.sampled_from(LIMITS))
def test_long_lives(seed: int, clock: bool, limits: dict[str, int]) -> None:
    """Much is appended and little replaced, so that there are segments to tear and to merge."""
    random = Random(seed)
    names = ["append", "below", "keep", "purge", "frame", "checkpoint", "replace", "first"]
    given: list[tuple[str, Any]] = []
    for action in random.choices(names, [30, 5, 5, 5, 10, 10, 1, 5], k=120):
        made = [(random.randrange(10), random.choice(["a", "b", None])) for _ in range(random.randrange(12))]
        given.append((action, made if action in ("append", "replace") else random.randrange(7)))
    check(given, clock, at_once=True, limits=limits)


def test_a_frame_handed_out_never_changes() -> None:
    table = StateTable(SCHEMA)
    table.append(frame([(1, "a")]))
    early = table.frame()
    table.append(frame([(2, "b")]))
    later = table.frame()
    table.append(frame([(3, "c")]), later.clone().extend(frame([(3, "c")])))
    table.purge_below("n", 2)
    assert early.rows() == [(1, "a")]
    assert later.rows() == [(1, "a"), (2, "b")]
    assert table.frame().rows() == [(2, "b"), (3, "c")]


def test_a_null_in_a_mask_keeps_nothing() -> None:
    table = StateTable(SCHEMA)
    table.append(frame([(1, "a"), (2, "b"), (3, "c")]))
    table.keep(pl.Series([True, None, True]))
    assert table.frame()["n"].to_list() == [1, 3]


def test_many_segments_become_few() -> None:
    table = StateTable(SCHEMA)
    for number in range(40):
        table.append(frame([(number, "x")]))
    assert len(table.changes().put) < 10
    assert table.purge_below("n", 38) == 38
    assert table.frame()["n"].to_list() == [38, 39]


def test_tombstones_count_from_the_segment_as_it_was_put() -> None:
    table = StateTable(SCHEMA)
    table.append(numbers(10))
    assert list(table.changes().put) == [0]
    purge(table, pl.col("n").is_in([0, 5]))
    assert {key: places.tolist() for key, places in table.changes().gone.items()} == {0: [0, 5]}
    assert table.purge_below("n", 3) == 2
    purge(table, pl.col("n") == 9)
    changes = table.changes()
    assert {key: places.tolist() for key, places in changes.gone.items()} == {0: [1, 2, 9]}
    purge(table, pl.col("n") == 8)  # the sixth of ten
    changes = table.changes()
    assert (list(changes.put), changes.gone, changes.dropped) == ([0], {}, set())
    assert changes.put[0]["n"].to_list() == [3, 4, 6, 7]
    purge(table, pl.col("n") == 6)
    assert {key: places.tolist() for key, places in table.changes().gone.items()} == {0: [2]}
    purge(table, pl.lit(True))
    changes = table.changes()
    assert (changes.put, changes.gone, changes.dropped) == ({}, {}, {0})


def test_what_comes_and_goes_in_between_is_not_written() -> None:
    table = StateTable(SCHEMA)
    table.track()
    table.append(numbers(10))
    purge(table, pl.col("n") == 3)
    table.append(numbers(10, 10))
    table.purge_below("n", 12)
    changes = table.changes()
    assert (list(changes.put), changes.gone, changes.dropped) == ([1], {}, set())
    assert changes.put[1]["n"].to_list() == list(range(12, 20))


def test_a_mostly_dead_segment_is_put_again() -> None:
    table = StateTable(SCHEMA)
    table.append(numbers(1000))
    table.changes()
    table.purge_below("n", 900)
    changes = table.changes()
    assert changes.put[0].height == 100
    assert not changes.gone


def test_what_was_held_before_anyone_asked_counts_as_put() -> None:
    table = StateTable(SCHEMA)
    table.append(numbers(10))
    table.purge_below("n", 2)
    table.append(numbers(10, 10))
    table.track()
    table.purge_below("n", 3)
    store = Store()
    store.write(table.changes())
    assert store.table().frame().equals(table.frame())
    assert store.put_rows == len(table) == 17
    assert store.dead_rows == 0


def test_a_large_segment_is_left_alone_by_small_ones() -> None:
    table, store = StateTable(SCHEMA), Store()
    table.append(numbers(100_000))
    store.write(table.changes())
    for page in range(2000):
        table.append(numbers(10, 100_000 + 10 * page))
        changes = table.changes()
        assert 0 not in changes.put
        store.write(changes)
        assert len(store.segments) <= state.COMPACT_SEGMENTS
    assert store.table().frame().equals(table.frame())


STEP = 1000


def _written(held: int, *, scattered: bool) -> float:
    """Rows written per step to a store, with so many rows coming and going per step, over a life of the state."""
    table, store = StateTable(SCHEMA), Store()
    random = np.random.default_rng(1)
    steps = held // STEP
    for step in range(2 * steps + 1):
        table.append(numbers(STEP, STEP * step))
        if scattered and step >= steps:
            kept = np.ones(len(table), dtype=np.bool_)
            kept[random.choice(len(table), len(table) - held, replace=False)] = False
            table.keep(pl.Series(kept))
        elif not scattered:
            table.purge_below("n", STEP * (step + 1) - held)
        store.write(table.changes())
        assert len(store.segments) <= state.COMPACT_SEGMENTS
        if step == steps:
            store.put_rows = store.dead_rows = 0
            assert len(table) == held
    assert store.table().frame().equals(table.frame())
    assert store.dead_rows <= steps * STEP
    return store.put_rows / steps


@pytest.mark.parametrize("scattered", [False, True])
def test_what_a_step_writes_does_not_follow_what_is_held(scattered: bool) -> None:
    sizes = [10_000, 100_000] if scattered else [10_000, 100_000, 1_000_000]
    for held in sizes:
        assert _written(held, scattered=scattered) <= STEP * (2 + log2(held / STEP))


@settings(max_examples=tries(100))
@given(st.lists(st.integers(1, 1 << 40), min_size=33, max_size=33) | st.lists(st.integers(1, 9), min_size=2))
def test_what_is_merged_doubles(heights: list[int]) -> None:
    first, end = to_merge(heights)
    assert 0 <= first < first + 2 <= end <= len(heights)
    run = heights[first:end]
    if sum(run) < 2 * max(run):  # there is no better one
        assert end == first + 2
        spans = [heights[a:b] for a in range(len(heights)) for b in range(a + 2, len(heights) + 1)]
        assert all(sum(span) < 2 * max(span) for span in spans)
        assert sum(run) == min(a + b for a, b in pairwise(heights))


def test_a_column_that_a_later_release_has_added() -> None:
    """Rows that were stored before have NULL there."""
    table = StateTable({"a": pl.Int64(), "b": pl.Float64()})
    table.restore({0: pl.DataFrame({"a": [1, 2, 3]})}, {0: np.array([1], dtype=np.uint32)})
    table.append(pl.DataFrame({"a": [4], "b": [0.5]}))
    assert table.frame().rows() == [(1, None), (3, None), (4, 0.5)]
