"""Running aggregates against DuckDB's window functions over the same finite input.

Timestamps are distinct, since RANGE frames of SQL include later tuples of the same time.
"""

from __future__ import annotations

import math
import random
from typing import Any

import duckdb
import pytest

from millstream.config import Options
from millstream.control.mill import LocalMill
from tests.tries import rotated

CALLS = [
    "COUNT(*)",
    "COUNT(v)",
    "SUM(v)",
    "AVG(w)",
    "MIN(name)",
    "MAX(w)",
    "VARIANCE(w)",
    "VAR_POP(v)",
    "STDDEV(v)",
    "STDDEV_POP(w)",
    "MEDIAN(w)",
    "QUANTILE_CONT(w, 0.25)",
    "QUANTILE_DISC(v, 0.7)",
    "FIRST_VALUE(v)",
    "LAST_VALUE(name)",
    "COUNT(DISTINCT v)",
    "SUM(DISTINCT v)",
    "ARRAY_AGG(v)",
    "STRING_AGG(name, ';')",
    "BOOL_AND(v > 0)",
    "SUM(v) FILTER (WHERE k = 1)",
    "COUNT(*) FILTER (WHERE w > 0.5)",
]
FRAMES = ["ROWS 4 PRECEDING", "ROWS 40 PRECEDING", "RANGE 15 PRECEDING", "ROWS UNBOUNDED PRECEDING"]
OF_PLACE = ["ROW_NUMBER()", "LAG(v)", "LAG(name, 3)", "LAG(w, 0)"]


def rows_of(seed: int) -> list[tuple[Any, ...]]:
    draw = random.Random(seed)
    rows, ts = [], 0
    for _ in range(150):
        ts += draw.choice([1, 1, 2, 7])
        values = draw.choice([None, -5, 0, 3, 9]), draw.choice([None, draw.random(), 2.0])
        rows.append((ts, draw.choice([1, 2, 2, 3]), *values, draw.choice([None, "a", "b", "ö"])))
    return rows


def of_duckdb(query: str, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    database = duckdb.connect()
    database.execute("CREATE TABLE s (ts BIGINT, k BIGINT, v BIGINT, w DOUBLE, name VARCHAR)")
    database.executemany("INSERT INTO s VALUES (?, ?, ?, ?, ?)", rows)
    return database.execute(f"{query} ORDER BY ts").fetchall()


def of_mill(query: str, rows: list[tuple[Any, ...]], options: Options) -> list[tuple[Any, ...]]:
    mill = LocalMill(options)
    mill.execute("CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT, w DOUBLE, name VARCHAR) ORDER BY ts")
    mill.add_query("q", query)
    found: list[tuple[Any, ...]] = []
    for start in range(0, len(rows), 37):
        mill.insert("s", rows[start : start + 37])
        mill.batch()
        found += mill.take_rows("q").rows()
    return sorted(found, key=lambda row: row[0])


def close(found: tuple[Any, ...], expected: tuple[Any, ...]) -> bool:
    pairs = zip(found, expected, strict=True)
    return all(a == b or (isinstance(b, float) and math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)) for a, b in pairs)


@pytest.mark.parametrize(("call", "by"), rotated(CALLS, ["", "PARTITION BY k "], keep=1))
def test_aggregates_over_frames(call: str, by: str) -> None:
    items = ", ".join(f"{call} OVER ({by}ORDER BY ts {frame}) AS c{n}" for n, frame in enumerate(FRAMES))
    query, rows = f"SELECT ts, {items} FROM s", rows_of(len(call))
    found, expected = of_mill(query, rows, Options(page_rows=9)), of_duckdb(query, rows)
    assert all(map(close, found, expected)) and len(found) == len(expected)


@pytest.mark.parametrize("by", ["", "PARTITION BY k ", "PARTITION BY name "])
def test_functions_of_the_place(by: str) -> None:
    items = ", ".join(f"{call} OVER ({by}ORDER BY ts) AS c{n}" for n, call in enumerate(OF_PLACE))
    query, rows = f"SELECT ts, {items} FROM s", rows_of(7)
    assert of_mill(query, rows, Options(shards=2)) == of_duckdb(query, rows)
