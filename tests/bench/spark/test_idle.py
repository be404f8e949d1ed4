"""Idle-waiting: the feed, and what counts as late."""

import time
from pathlib import Path

import polars as pl
import pytest

from millstream.control.mill import LocalMill
from millstream_bench.spark.idle import run as idle
from millstream_bench.spark.idle.feed import ROWS, Arrivals, Feed, latencies
from millstream_bench.spark.idle.mill import MODES, SQL


def test_feed(tmp_path: Path) -> None:
    with Feed(tmp_path):
        time.sleep(0.35)
    busy = [pl.read_parquet(path) for path in sorted((tmp_path / "a").glob("*.parquet"))]
    assert len(busy) >= 2 and all(rows.height == ROWS for rows in busy)
    assert pl.concat(rows["ts"] for rows in busy).is_sorted()
    assert len(list((tmp_path / "b").glob("*.parquet"))) == 1
    assert not list((tmp_path / "making").iterdir())


def test_what_has_not_come_counts_as_the_end() -> None:
    arrivals = Arrivals()
    arrivals.note([10_900_000])
    assert arrivals.seen[0][1] == 10_900_000 and arrivals.seen[0][0] <= time.time()
    assert latencies([(10.6, 10_500_000)], 10.5, 11.5, 20.0) == ([100.0, 8500.0], False)


@pytest.mark.parametrize("query", SQL)
def test_queries_wait_for_both_streams(query: str) -> None:
    mill = LocalMill()
    for stream in ("a", "b"):
        mill.execute(f"CREATE STREAM {stream} (k BIGINT, ts TIMESTAMP) ORDER BY current_time")
    plan = mill.execute(f"EXPLAIN PHYSICAL {SQL[query]}")
    assert "a ⇢" in plan and "b ⇢" in plan


def test_summary_and_plot(tmp_path: Path) -> None:
    made = [
        idle.summary({"query": query, "mode": mode, "complete": True, "latencies_ms": [100.0, 200.0, 300.0]})
        for query in SQL
        for mode in MODES
    ]
    assert made[0]["median_ms"] == 200 == made[0]["mean_ms"] and made[0]["counts"] == 3
    idle.plot(made, tmp_path / "idle.png")
    assert (tmp_path / "idle.png").stat().st_size > 1000
