"""Aggregate functions from SQL against DuckDB, over random finite streams: the same names, types, NULLs and values."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from millstream.algebra.aggregate.functions import known, lookup
from millstream.config import Options
from millstream.control.mill import LocalMill
from tests.paths import DOCS
from tests.tries import tries

CALLS = (
    *(f"{name}({column})" for name in ("VARIANCE", "VAR_SAMP", "VAR_POP", "STDDEV", "STDDEV_POP") for column in "ix"),
    *(f"{name}(DISTINCT {column})" for name in ("COUNT", "SUM", "AVG", "STDDEV_SAMP", "MEDIAN") for column in "ix"),
    "COUNT(DISTINCT s)",
    "COUNT(DISTINCT t)",
    "MEDIAN(i)",
    "MEDIAN(x)",
    *(f"QUANTILE_CONT(x, {p})" for p in (0, 0.1, 0.5, 1)),
    *(f"QUANTILE_DISC({column}, {p})" for column in "ixst" for p in (0, 0.1, 0.3, 0.5, 0.9, 1)),
    "QUANTILE(i, 0.25)",
    "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY x)",
    "PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY i)",
    "BOOL_AND(b)",
    "BOOL_OR(b)",
    "FIRST(s)",
    "LAST(x)",
    "ARRAY_AGG(i)",
    "ARRAY_AGG(s)",
    "STRING_AGG(s, '-')",
    "STRING_AGG(i)",
    *(f"{name}(i) FILTER (WHERE b)" for name in ("COUNT", "SUM", "AVG", "MIN", "VAR_POP", "MEDIAN", "FIRST", "LAST")),
    "COUNT(*) FILTER (WHERE x > 0 OR b)",
    "COUNT(DISTINCT s) FILTER (WHERE b)",
    "ARRAY_AGG(i) FILTER (WHERE b)",
    "STRING_AGG(s, ', ') FILTER (WHERE b)",
)
UNORDERED = ("ARRAY_AGG(DISTINCT i)", "ARRAY_AGG(DISTINCT s)", "STRING_AGG(DISTINCT s, '')")
"""DuckDB returns distinct values in any order."""
NAMES = [f"c{n}" for n in range(len(CALLS) + len(UNORDERED))]
ITEMS = ", ".join(f"{call} AS {name}" for call, name in zip((*CALLS, *UNORDERED), NAMES, strict=True))
COLUMNS = "ts BIGINT, k BIGINT, i INT, x DOUBLE, s VARCHAR, b BOOLEAN, t TIMESTAMP"

Tuple = tuple[Any, ...]
tuples = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.one_of(st.none(), st.integers(-5, 5), st.sampled_from([2**31 - 1, -(2**31)])),
        st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.0]), st.floats(-1e6, 1e6, width=32)),
        st.sampled_from([None, "", "a", "b", "A", "é", "it's"]),
        st.sampled_from([None, True, False]),
        st.sampled_from([None, "2024-01-02 03:04:05", "1969-12-31 23:59:59.5"]),
    ),
    max_size=20,
)


def found(rows: list[Tuple], options: Options, every: int) -> dict[Any, Tuple]:
    mill = LocalMill(options)
    mill.execute(f"CREATE STREAM r ({COLUMNS}) ORDER BY ts")
    mill.add_query("q", f"SELECT k, {ITEMS} FROM r [RANGE 100] GROUP BY k")
    for start in range(0, len(rows), every):
        mill.insert("r", rows[start : start + every])
        mill.batch()
    mill.insert("r", [(1000, 0, *[None] * 5)])
    mill.batch()
    return {key: values for key, *values in mill.take_rows("q").rows()}


def meant(rows: list[Tuple]) -> Iterator[tuple[int, Tuple]]:
    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        database.execute(f"CREATE TABLE r ({COLUMNS})")
        if rows:
            database.executemany("INSERT INTO r VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        for key, *values in database.execute(f"SELECT k, {ITEMS} FROM r GROUP BY k").fetchall():
            yield key, tuple(values)


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and right is not None:
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-6)
    return bool(left == right)


def bag(value: Any) -> Any:
    return None if value is None else sorted(value, key=lambda item: (item is None, item))


@settings(max_examples=tries(25), deadline=None)
@given(tuples, st.integers(1, 7), st.sampled_from([Options(), Options(shards=2, page_rows=3)]))
@example([(0, None, None, None, None, None, None)], 1, Options())
@example([(0, 3, 2.5, "a", True, None)], 1, Options())
def test_every_function_equals_duckdb(rows: list[Tuple], every: int, options: Options) -> None:
    timed = [(n, *row[:6]) for n, row in enumerate(rows)]
    ours, theirs = found(timed, options.model_copy(), every), dict(meant(timed))
    assert ours.keys() == theirs.keys()
    for key, expected in theirs.items():
        for call, mine, value in zip((*CALLS, *UNORDERED), ours[key], expected, strict=True):
            if call in UNORDERED:
                mine, value = bag(mine), bag(value)
            assert same(mine, value), (call, key, mine, value)


@pytest.mark.parametrize("call", ["MEDIAN(x)", "QUANTILE_DISC(x, 0.5)", "COUNT(DISTINCT x)", "VAR_POP(x)"])
def test_nan_is_the_greatest_number(call: str) -> None:
    mill = LocalMill()
    mill.execute("CREATE STREAM r (ts BIGINT, x DOUBLE) ORDER BY ts")
    mill.add_query("q", f"SELECT {call} AS a FROM r [RANGE 100]")
    values = [math.nan, 1.0, 7.0, math.nan, 2.0]
    mill.insert("r", [*enumerate(values), (1000, 0.0)])
    mill.batch()
    (mine,) = mill.take_rows("q")["a"].to_list()
    with duckdb.connect() as database:
        database.execute("CREATE TABLE r (x DOUBLE)")
        database.executemany("INSERT INTO r VALUES (?)", [(value,) for value in values])
        try:
            ((theirs,),) = database.execute(f"SELECT {call} FROM r").fetchall()
        except duckdb.OutOfRangeException:  # here NaN is a result as any other
            theirs = math.nan
    assert mine == theirs or (math.isnan(mine) and math.isnan(theirs))


OVER = ("ROWS 2 PRECEDING", "RANGE 3 PRECEDING", "UNBOUNDED PRECEDING", "ROWS 3 PRECEDING SLIDE 2")


@pytest.mark.parametrize("call", ["SUM(x)", "AVG(x)", "STDDEV(x)", "MEDIAN(x)", "APPROX_QUANTILE(x, 0.5)"])
def test_infinity_warns_of_nothing(call: str) -> None:
    mill = LocalMill(Options(contracts="off"))
    mill.execute("CREATE STREAM s (ts BIGINT, x DOUBLE) ORDER BY ts")
    queries = [f"SELECT ts, {call} OVER ({frame}) FROM s" for frame in OVER]
    queries.append(f"SELECT window_end, {call} FROM s [RANGE 4 SLIDE 2] GROUP BY window_end EMIT EARLY EVERY 1 SECOND")
    for number, query in enumerate(queries):
        mill.add_query(f"q{number}", query)
    values = [math.inf, -math.inf, 1.0, math.nan, None, 1e308, 1e308, -math.inf]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        mill.insert("s", list(enumerate(values * 3)))
        mill.drain()
    assert all(mill.take_rows(f"q{number}").height for number in range(len(queries)))


def test_the_docs_list_every_function() -> None:
    page = (DOCS / "aggregate-functions.md").read_text()
    table = re.findall(r"^\| `(\w+)` \| ([^|]*)\|.*\| ([^|]*)\|$", page, re.MULTILINE)
    listed = {name: (re.findall(r"`(\w+)`", others), tuples) for name, others, tuples in table}
    own = [
        function
        for function in {lookup(name) for name in known()}
        if type(function).__module__.startswith("millstream.")
    ]
    assert {function.name: [*function.spellings] for function in own} == {
        n: others for n, (others, _) in listed.items()
    }
    for function in own:
        tuples = listed[function.name][1]
        assert function.needs_over or ("merged" in tuples) == function.mergeable, function.name
        assert function.needs_over or ("in order" in tuples) == function.ordered, function.name
