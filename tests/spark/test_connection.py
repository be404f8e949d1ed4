"""The Python API on Spark."""

import time
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

import millstream as ms
from millstream.errors import MillstreamError

BIDS = """CREATE STREAM bids (auction BIGINT, price BIGINT, ts TIMESTAMP) ORDER BY ts
          WITH (connector = 'nexmark', stream = 'bid', events = '20000', max_rows_per_trigger = '10000')"""
JOIN = """SELECT a.category, b.auction, b.price FROM bids b JOIN auctions a ON b.auction = a.id
          WHERE b.ts BETWEEN a.ts AND a.ts + INTERVAL '10' SECOND"""


def test_a_session_of_the_program(spark: SparkSession, tmp_path: Path) -> None:
    seen: list[int] = []
    with ms.connect(spark, checkpoint=tmp_path / "checkpoint", shards=2) as mill:
        mill.sql(BIDS)
        dear = mill.sql("SELECT auction, price FROM bids WHERE price > 1000000")
        dear.start("parquet", name="dear", path=tmp_path / "dear")
        counted = mill.sql("SELECT window_start, COUNT(*) AS n FROM bids [RANGE 1 SECOND]").start(
            lambda batch, rows: seen.extend(rows["n"].to_list())
        )
        assert mill.await_end(timeout=120)
        progress = counted.progress()
        assert progress.rows_out == len(seen)
        assert "Scan" in counted.explain()
    assert sum(seen) == 18_400
    written = pl.read_parquet(tmp_path / "dear" / "*.parquet")
    assert written.height > 0 and (written["price"] > 1_000_000).all()
    assert spark.range(3).count() == 3  # the session is still there


def test_queries_start_and_stop_while_the_job_runs(spark: SparkSession) -> None:
    with ms.connect(spark, shards=2) as mill:
        mill.sql("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts")
        first = mill.sql("SELECT k, v FROM s WHERE v > 1").start()
        mill.insert("s", [(1, 1, 10), (1, 2, 11)])
        assert first.take().rows() == [(1, 2)]
        second = mill.sql("CREATE QUERY sums AS SELECT window_end, k, SUM(v) AS total FROM s [RANGE 10] GROUP BY k")
        mill.insert("s", [(1, 3, 21), (2, 4, 22), (1, 5, 35)])
        assert sorted(second.take().rows()) == [(30, 1, 3), (30, 2, 4)]
        mill.sql("SET strategy = 'bfs'")
        first.stop()
        mill.insert("s", [(7, 7, 50)])
        assert second.take().rows() == [(40, 1, 5)]
        assert [query.name for query in mill.queries] == ["sums"]


def test_a_source_that_cannot_be_opened_leaves_other_queries_alone(spark: SparkSession) -> None:
    with ms.connect(spark, shards=2) as mill:
        mill.sql("CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts")
        first = mill.sql("SELECT k FROM s").start()
        mill.sql("CREATE STREAM lost (k BIGINT, ts BIGINT) ORDER BY ts WITH (connector = 'parquet', path = '/nowhere')")
        with pytest.raises(MillstreamError, match="M5040: there is no file or folder '/nowhere'"):
            mill.sql("SELECT k FROM lost").start()
        mill.insert("s", [(1, 10)])
        assert first.take().rows() == [(1,)]


def test_a_query_as_a_data_frame(spark: SparkSession, tmp_path: Path) -> None:
    with ms.connect(spark, checkpoint=tmp_path / "checkpoint", shards=2) as mill:
        mill.sql(BIDS)
        mill.sql("""CREATE STREAM auctions (id BIGINT, category BIGINT, ts TIMESTAMP) ORDER BY ts
                    WITH (connector = 'nexmark', stream = 'auction', events = '20000')""")
        frame = mill.sql(JOIN).to_df()
        assert frame.isStreaming and frame.columns == ["category", "auction", "price"]
        writer = frame.where("price > 100").writeStream.format("memory").queryName("joined").outputMode("append")
        running = writer.option("checkpointLocation", str(tmp_path / "spark")).start()
        try:
            running.processAllAvailable()
        finally:
            running.stop()
        assert mill.spark is not None and mill.spark.table("joined").count() > 1000


def test_a_data_frame_as_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write = lambda n, rows: pl.DataFrame(rows, schema=["k", "v", "ts"], orient="row").write_parquet(  # noqa: E731
        folder / f"{n}.parquet"
    )
    write(1, [(k % 3, k, 1_000_000 * k) for k in range(20)])
    frame = (
        spark.readStream.schema("k bigint, v bigint, ts bigint").option("maxFilesPerTrigger", 1).parquet(str(folder))
    )
    frame = frame.selectExpr("k", "v", "timestamp_micros(ts) AS ts")
    counted = "SELECT window_end, k, COUNT(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY k"
    for start in (0, 1):
        with ms.connect(spark, checkpoint=tmp_path / "checkpoint", shards=2) as mill:
            mill.stream("s", frame, order_by="ts", watermark="2 seconds")
            if start == 0:
                mill.sql(f"CREATE QUERY q AS {counted}")
                mill.sql("CREATE QUERY big AS SELECT k, v FROM s WHERE v > 100")
            else:
                write(2, [(k % 3, k, 1_000_000 * k) for k in range(20, 160)])
            found: list[tuple[object, ...]] = []
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and sum(row[2] for row in found) < (10 if start == 0 else 140):
                found += mill.query("q").take().rows()
                time.sleep(0.1)
            assert sum(row[2] for row in found) == (10 if start == 0 else 140)
            if start == 1:
                assert mill.query("big").take().height == 59


def test_a_connection_continues_where_the_last_one_stopped(spark: SparkSession, tmp_path: Path) -> None:
    with ms.connect(spark, checkpoint=tmp_path, shards=2) as mill:
        mill.sql("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts")
        mill.sql("CREATE QUERY sums AS SELECT window_end, k, SUM(v) AS total FROM s [RANGE 10] GROUP BY k")
        mill.insert("s", [(1, 3, 21), (2, 4, 22)])
        assert mill.query("sums").take().height == 0
    with ms.connect(spark, checkpoint=tmp_path, shards=2) as mill:
        mill.insert("s", [(1, 5, 25), (1, 1, 30)])
        assert sorted(mill.query("sums").take().rows()) == [(30, 1, 8), (30, 2, 4)]


def test_mistakes_are_refused_before_anything_runs(spark: SparkSession) -> None:
    with ms.connect(spark) as mill:
        mill.sql("CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts")
        for wrong in (
            lambda: mill.sql("SELECT nosuch FROM s"),
            lambda: mill.sql("SELECT k FROM s").start("carrier pigeon"),
            lambda: mill.sql("SELECT k FROM s").to_df(),
            lambda: mill.sql("SELECT k FROM s").take(),
            lambda: mill.insert("nosuch", [(1, 2)]),
            lambda: ms.connect(spark, master="local"),
        ):
            with pytest.raises(MillstreamError):
                wrong()
