"""On Spark, a query that fails and a sink that raises leave the other queries alone."""

import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession

import millstream as ms
from millstream.errors import MillstreamError, OperatorError

FILES = """CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts
           WITH (connector = 'parquet', path = '{}', once = true, max_files_per_trigger = 1)"""
HEALTHY = {
    "plain": "SELECT k, v, ts FROM s",
    "counts": "SELECT k, COUNT(*) AS n, window_end FROM s [RANGE 100] GROUP BY k",
    "pairs": "SELECT a.k, a.ts, b.ts AS bts FROM s [RANGE 3] a, s [RANGE 3] b WHERE a.k = b.k",
}
BROKEN = "SELECT k, v * 2000000 AS p FROM s"


def write(folder: Path, files: int) -> None:
    """The third file has a value that does not fit a product."""
    folder.mkdir()
    for number in range(files):
        times = range(number * 100, number * 100 + 100)
        frame = pl.DataFrame({"k": [n % 7 for n in times], "v": [9_000_000_000_000 if n == 250 else n for n in times]})
        frame.with_columns(ts=pl.Series(times)).write_parquet(folder / f"{number}.parquet")


def results(folder: Path) -> dict[str, list[Any]]:
    return {name: sorted(pl.read_parquet(folder / name / "*.parquet").rows()) for name in HEALTHY}


def start(mill: ms.Connection, data: Path, out: Path, *, broken: bool) -> None:
    mill.sql(FILES.format(data))
    with mill.together():
        for name, select in HEALTHY.items():
            mill.sql(f"CREATE QUERY {name} AS {select} INTO parquet WITH (path = '{out / name}')")
        if broken:
            mill.sql(f"CREATE QUERY broken AS {BROKEN}")


def test_a_query_that_fails(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "data", 6)
    with ms.connect(spark, shards=2) as mill:
        start(mill, tmp_path / "data", tmp_path / "wanted", broken=False)
        assert mill.await_end(timeout=120)
    with ms.connect(spark, checkpoint=tmp_path / "kept", shards=2) as mill:
        start(mill, tmp_path / "data", tmp_path / "found", broken=True)
        query = mill.query("broken")
        assert mill.await_end(timeout=120)
        assert isinstance(query.error, OperatorError) and query.error.row == "(k = 5, v = 9000000000000, ts = 250)"
        assert query.take().height == 200 and not query.running
        with pytest.raises(OperatorError):
            query.take()
        assert "broken: 200 rows out, failed in batch " in str(mill.sql("SHOW QUERIES"))
        mill.check()
    assert results(tmp_path / "found") == results(tmp_path / "wanted")
    with ms.connect(spark, checkpoint=tmp_path / "kept", shards=2) as mill:
        query = mill.query("broken")
        assert query.error is not None and query.error.code == "M6053"
        write(tmp_path / "more", 1)
        query.start()
        assert query.running
        assert mill.await_end(timeout=60)
    assert results(tmp_path / "found") == results(tmp_path / "wanted")


STATEFUL = {
    "windows": "SELECT k, COUNT(*) AS n, SUM(v) AS t, window_end FROM t [RANGE 150] GROUP BY k",
    "stages": """SELECT n, COUNT(*) AS groups FROM
                 (SELECT k, COUNT(*) AS n, window_end AS e FROM t [RANGE 30] GROUP BY k) [RANGE 170] GROUP BY n""",
    "pairs": "SELECT x.k, x.ts, y.ts AS yts FROM t [RANGE 70] x, t [RANGE 90] y WHERE x.k = y.k AND x.v > y.v",
}


def stateful(mill: ms.Connection, data: Path, out: Path) -> None:
    mill.sql(FILES.format(data))
    mill.sql(FILES.format(data.with_name("own")).replace("STREAM s", "STREAM t"))
    with mill.together():
        for name, select in {"plain": HEALTHY["plain"], **STATEFUL}.items():
            mill.sql(f"CREATE QUERY {name} AS {select} INTO parquet WITH (path = '{out / name}')")


def test_a_failed_query_goes_on_with_what_it_held(spark: SparkSession, tmp_path: Path) -> None:
    def rows(folder: str) -> dict[str, list[Any]]:
        names = ("plain", *STATEFUL)
        return {name: sorted(pl.read_parquet(tmp_path / folder / name / "*.parquet").rows()) for name in names}

    write(tmp_path / "data", 6)
    write(tmp_path / "own", 6)
    with ms.connect(local=True, shards=2) as mill:
        stateful(mill, tmp_path / "data", tmp_path / "wanted")
        assert mill.await_end()
    damaged = tmp_path / "own" / "3.parquet"
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:4] + bytes(len(whole) - 50) + whole[-46:])
    with ms.connect(spark, checkpoint=tmp_path / "kept", shards=2) as mill:
        stateful(mill, tmp_path / "data", tmp_path / "found")
        assert mill.await_end(timeout=120)
        assert all(mill.query(name).error is not None for name in STATEFUL)
        damaged.write_bytes(whole)
        mill.query("windows").start()
        assert mill.await_end(timeout=120)
    with ms.connect(spark, checkpoint=tmp_path / "kept", shards=2) as mill:
        mill.query("stages").start()
        mill.query("pairs").start()
        assert mill.await_end(timeout=120)
    assert rows("found") == rows("wanted")


def test_a_sink_that_fails_for_a_while(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "data", 4)
    found: list[Any] = []
    broken = True

    def take(_batch: int, rows: pl.DataFrame) -> None:
        if broken:
            raise ValueError("boom")
        found.extend(rows.rows())

    with ms.connect(spark, checkpoint=tmp_path / "kept", shards=2) as mill:
        mill.sql(FILES.format(tmp_path / "data"))
        with mill.together():
            query = mill.sql("SELECT k, ts FROM s").start(take, name="q")
            other = mill.sql("SELECT ts FROM s").start(name="other")
        deadline = time.monotonic() + 100
        while (trouble := query.progress().sink) is None or trouble.rows < 400:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert not mill.await_end(timeout=1)  # results wait for the sink
        assert other.take().height == 400 and not found
        assert (trouble.rows, trouble.error) == (400, "ValueError: boom")
        broken = False
    assert sorted(ts for _, ts in found) == [*range(400)]


def test_a_query_that_stops_with_its_sink(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "data", 4)

    def take(_batch: int, _rows: pl.DataFrame) -> None:
        raise ValueError("boom")

    with ms.connect(spark, checkpoint=tmp_path / "kept", shards=2) as mill:
        mill.sql(FILES.format(tmp_path / "data"))
        with mill.together():
            query = mill.sql("SELECT k, ts FROM s").start(take, name="q", on_error="stop")
            other = mill.sql("SELECT ts FROM s").start(name="other")
        with pytest.raises(MillstreamError, match="M6044: sink of the program of query 'q' failed: ValueError: boom"):
            query.await_end(timeout=120)
        assert mill.await_end(timeout=120)
        assert other.take().height == 400
