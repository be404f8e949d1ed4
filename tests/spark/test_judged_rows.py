"""On Spark a row is bad or not whatever columns queries read, and bad rows of derived streams are counted once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession
from tests.spark.test_connector_streams import wait_for

import millstream as ms

HUGE = 1 << 62


def counts(mill: ms.Connection, name: str) -> tuple[Any, ...]:
    return tuple(mill.mill.counts(name).values())


def write(folder: Path, name: str, numbers: range) -> None:
    """Every tenth row has a note that is no number; every third value does not fit once it is multiplied."""
    folder.mkdir(exist_ok=True)
    frame = pl.DataFrame(
        {
            "ts": numbers,
            "k": [n % 7 for n in numbers],
            "v": [HUGE if n % 3 == 0 else n for n in numbers],
            "note": ["?" if n % 10 == 0 else str(n) for n in numbers],
        }
    )
    frame.write_parquet(folder / f".{name}")
    (folder / f".{name}").rename(folder / name)


@pytest.mark.timeout(900)
def test_files_and_derived_streams(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    write(folder, "1.parquet", range(300))
    with ms.connect(spark, checkpoint=tmp_path / "checkpoint", shards=2) as mill:
        mill.sql(
            "CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT, note BIGINT) ORDER BY ts"
            f" WITH (connector = 'parquet', path = '{folder}')"
        )
        mill.sql("CREATE STREAM d WITH (on_overflow = 'bad') AS SELECT ts, k, v * 4 AS w FROM s")
        with mill.together():
            counted = mill.sql("SELECT k, window_end, COUNT(*) AS n FROM d [RANGE 1000] GROUP BY k").start()
            bad = mill.sql("SELECT input, reason FROM s__bad").start()
        wait_for(lambda: counts(mill, "s") == (270, 0, 30))
        wait_for(lambda: counts(mill, "d") == (180, 0, 90))
        found = bad.take().sort("input").rows()
        reason = "column 'note': '?' is not a value of type BIGINT (row 1 of 1.parquet)"
        assert len(found) == 30 and found[0] == (f"0 | 0 | {HUGE} | ?", reason)
        mill.sql("SELECT w FROM d").start(name="plain")
        write(folder, "2.parquet", range(300, 600))
        wait_for(lambda: counts(mill, "d") == (360, 0, 180))
        counted.stop()
        assert counts(mill, "d") == (360, 0, 180)
    with ms.connect(spark, checkpoint=tmp_path / "checkpoint", shards=2) as mill:
        write(folder, "3.parquet", range(600, 900))
        wait_for(lambda: counts(mill, "d") == (540, 0, 270))
        assert counts(mill, "s") == (810, 0, 90)
        assert "d (ts BIGINT, k BIGINT, w BIGINT): derived, 540 accepted, 0 late, 270 bad" in mill.sql("SHOW STREAMS")
        (derived,) = (stream for stream in mill.query("plain").progress().streams if stream.name == "d")
        assert (derived.accepted, derived.bad) == (540, 270)


@pytest.mark.timeout(900)
def test_dataframes(spark: SparkSession, tmp_path: Path) -> None:
    """The time `seen`, which no query reads, is out of range in one row."""
    (tmp_path / "in").mkdir()
    rows = pl.DataFrame({"ts": [1, 2, 3], "k": [1, 2, 3], "seen": [0, HUGE, 5]})
    rows.write_parquet(tmp_path / "in" / "1.parquet")
    read = spark.readStream.schema("ts bigint, k bigint, seen bigint").parquet(str(tmp_path / "in"))
    with ms.connect(spark, shards=2) as mill:
        mill.stream("s", read.selectExpr("ts", "k", "timestamp_micros(seen) AS seen"), order_by="ts")
        with mill.together():
            kept = mill.sql("SELECT k FROM s").start()
            bad = mill.sql("SELECT input, reason FROM s__bad").start()
        wait_for(lambda: counts(mill, "s") == (2, 0, 1))
        assert sorted(kept.take().rows()) == [(1,), (3,)]
        [(text, reason)] = bad.take().rows()
        assert (
            text == f"ts = 2, seen = {HUGE}" and reason == f"column 'seen': {HUGE} (us) is out of range for TIMESTAMP"
        )
