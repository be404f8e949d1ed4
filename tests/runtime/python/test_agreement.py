"""Python aggregates: those of SUM, AVG and MAX agree with the built-in ones, over every frame, cut and shard count."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.mill import LocalMill
from tests.runtime.python.classes import ArrowSum, ColumnSum, registered
from tests.tries import tries

STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts"


BODY = """
CREATE AGGREGATE sql_sum(x BIGINT) : BIGINT {
    TABLE state(total BIGINT);
    INITIALIZE: { INSERT INTO state VALUES (x); }
    ITERATE: { UPDATE state SET total = total + x; }
    TERMINATE: { INSERT INTO RETURN SELECT total FROM state; }
} IGNORE NULLS
"""
BOTH = {"my_sum": "SUM", "my_avg": "AVG", "my_max": "MAX"}


frames = st.one_of(
    st.just("RANGE UNBOUNDED PRECEDING"),
    st.integers(0, 4).map(lambda size: f"ROWS {size} PRECEDING"),
    st.integers(0, 6).map(lambda size: f"RANGE {size} PRECEDING"),
    st.integers(1, 6).map(lambda size: f"RANGE {size} PRECEDING ACTIVE EXPIRATION"),
    st.tuples(st.integers(0, 4), st.integers(1, 6)).map(lambda t: f"ROWS {t[0]} PRECEDING SLIDE {t[1]}"),
    st.tuples(st.integers(0, 6), st.integers(1, 6)).map(lambda t: f"RANGE {t[0]} PRECEDING SLIDE {t[1]}"),
)
tuples = st.tuples(st.integers(0, 2), st.integers(-9, 9), st.integers(0, 3))


@settings(max_examples=tries(40), deadline=None)
@given(
    frame=frames,
    steps=st.lists(tuples, min_size=1, max_size=20),
    partition=st.sampled_from(["PARTITION BY k ", ""]),
    size=st.integers(1, 8),
    shards=st.sampled_from([1, 3]),
    restart=st.booleans(),
)
def test_python_aggregates_equal_built_in_ones(
    frame: str, steps: list[tuple[int, int, int]], partition: str, size: int, shards: int, restart: bool
) -> None:
    mill = registered(LocalMill(Options.read(shards=shards)))
    mill.execute(STREAM)
    for own, built_in in BOTH.items():
        for name, function in ((own, own), (f"{own}_built_in", built_in)):
            mill.add_query(name, f"SELECT k, v, ts, {function}(v) OVER ({partition}{frame}) AS x FROM s")
    rows, now = [], 0
    for k, v, gap in steps:
        now += gap
        rows.append((k, v, now))
    rows.append((9, 0, now + 100))
    found: dict[str, list[Any]] = {}
    for at in range(0, len(rows), size):
        mill.insert("s", rows[at : at + size])
        mill.batch()
        for name in mill.queries:
            found.setdefault(name, []).extend(mill.take_rows(name).rows())
        if restart:
            mill = mill.restarted()
    for own in BOTH:
        expected = sorted(found[f"{own}_built_in"])
        assert sorted(found[own]) == [pytest.approx(row) for row in expected], own


@settings(max_examples=tries(25), deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 2), st.none() | st.integers(-9, 9), st.integers(0, 3)), min_size=1, max_size=20
    ),
    window=st.tuples(st.integers(1, 8), st.integers(1, 8)),
    size=st.integers(1, 8),
    shards=st.sampled_from([1, 3]),
    restart=st.booleans(),
)
def test_python_aggregates_of_grouped_windows_equal_built_in_ones(
    steps: list[tuple[int, int | None, int]], window: tuple[int, int], size: int, shards: int, restart: bool
) -> None:
    mill = registered(LocalMill(Options.read(shards=shards)))
    mill.aggregate(ColumnSum, name="column_sum", arguments=["BIGINT"], returns="BIGINT")
    mill.execute(STREAM)
    mill.execute(BODY)
    items = ", ".join(f"{own}(v) AS {own}, {built_in}(v) AS {built_in.lower()}" for own, built_in in BOTH.items())
    items += ", sql_sum(v) AS sql_sum, column_sum(COALESCE(v, 0)) AS column_sum, SUM(COALESCE(v, 0)) AS all_sum"
    bracket = f"[RANGE {max(window)} SLIDE {min(window)}]"
    mill.add_query("q", f"SELECT k, window_end, {items} FROM s {bracket} GROUP BY k")
    rows, now = [], 0
    for k, v, gap in steps:
        now += gap
        rows.append((k, v, now))
    rows.append((9, 0, now + 100))
    found: list[dict[str, Any]] = []
    for at in range(0, len(rows), size):
        mill.insert("s", rows[at : at + size])
        mill.batch()
        found += mill.take_rows("q").to_dicts()
        mill = mill.restarted() if restart else mill
    assert found
    for row in found:
        for own, built_in in BOTH.items():
            assert row[own] == (None if row[built_in.lower()] is None else pytest.approx(row[built_in.lower()])), row
        assert row["sql_sum"] == row["sum"] and row["column_sum"] == row["all_sum"], row


# --- whole columns ----------------------------------------------------------------------------------------------------


@settings(max_examples=tries(25), deadline=None)
@given(
    frame=frames,
    steps=st.lists(tuples, min_size=1, max_size=20),
    partition=st.sampled_from(["PARTITION BY k ", ""]),
    size=st.integers(1, 8),
    restart=st.booleans(),
)
def test_vectorized_aggregates_equal_built_in_ones(
    frame: str, steps: list[tuple[int, int, int]], partition: str, size: int, restart: bool
) -> None:
    mill = LocalMill()
    mill.aggregate(ColumnSum, name="polars_sum", arguments=["BIGINT"], returns="BIGINT")
    mill.aggregate(ArrowSum, name="arrow_sum", arguments=["BIGINT"], returns="BIGINT")
    mill.execute(STREAM)
    for name in ("polars_sum", "arrow_sum", "sum"):
        mill.add_query(name, f"SELECT k, v, ts, {name}(v) OVER ({partition}{frame}) AS x FROM s")
    rows, now = [], 0
    for k, v, gap in steps:
        now += gap
        rows.append((k, v, now))
    rows.append((9, 0, now + 100))
    found: dict[str, list[Any]] = {name: [] for name in mill.queries}
    for at in range(0, len(rows), size):
        mill.insert("s", rows[at : at + size])
        mill.batch()
        for name in found:
            found[name] += mill.take_rows(name).rows()
        mill = mill.restarted() if restart else mill
    assert sorted(found["polars_sum"]) == sorted(found["arrow_sum"]) == sorted(found["sum"])
