"""Spark's DataFrames as streams, and queries as DataFrames: also one behind the other."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import millstream as ms
from millstream.errors import MillstreamError

ZONE = "spark.sql.session.timeZone"


@pytest.fixture
def abroad(spark: SparkSession) -> Iterator[SparkSession]:
    """A session in another time zone."""
    before = spark.conf.get(ZONE)
    spark.conf.set(ZONE, "America/New_York")
    yield spark
    assert spark.conf.get(ZONE) == "America/New_York"
    spark.conf.set(ZONE, before or "UTC")


class Folder:
    """A folder of files, read one a batch."""

    def __init__(self, path: Path, **columns: str) -> None:
        self.path, self.columns, self.files = path, columns, 0
        path.mkdir()

    def add(self, *rows: tuple[Any, ...]) -> None:
        self.files += 1
        frame = pl.DataFrame(rows, schema=dict.fromkeys(self.columns, pl.Int64), orient="row")
        frame.write_parquet(self.path / f"{self.files}.parquet")

    def frame(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.schema(", ".join(f"{name} bigint" for name in self.columns))
        read = reader.option("maxFilesPerTrigger", 1).parquet(str(self.path))
        return read.selectExpr(*(f"{made} AS {name}" for name, made in self.columns.items()))


class Collected:
    """The rows of a DataFrame, by batch: a batch that Spark repeats comes once."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint = checkpoint
        self.batches: dict[int, list[tuple[Any, ...]]] = {}

    def run(self, frame: DataFrame, least: int | None = None) -> Counter[Any]:
        """Run until all input is read, or until that number of rows has come; return the rows."""

        def take(rows: DataFrame, batch: int) -> None:
            self.batches[batch] = [tuple(row) for row in rows.collect()]

        writer = frame.writeStream.outputMode("append").foreachBatch(take)
        running = writer.option("checkpointLocation", str(self.checkpoint)).start()
        try:
            if least is None:
                running.processAllAvailable()
            deadline = time.monotonic() + 60
            while least is not None and self.rows().total() < least and time.monotonic() < deadline:
                running.awaitTermination(0.2)
        finally:
            running.stop()
        return self.rows()

    def rows(self) -> Counter[Any]:
        return Counter(row for rows in self.batches.values() for row in rows)


def test_in_and_out_and_on_with_spark(abroad: SparkSession, tmp_path: Path) -> None:
    """Counts of Millstream, added up by Spark behind a watermark on their time; another batch after a restart."""
    spark, folder = abroad, Folder(tmp_path / "in", k="k", Ts="timestamp_micros(Ts)")
    seconds = [(0, 25), (25, 50), (50, 95)]
    rows = [[(n % 3, n * 1_000_000) for n in range(*span)] for span in seconds]
    folder.add(*rows[0], (0, None))
    folder.add(*rows[1])
    collected = Collected(tmp_path / "spark")
    for start in range(2):
        with ms.connect(spark, checkpoint=tmp_path / "checkpoint", shards=2) as mill:
            mill.stream("s", folder.frame(spark), order_by="ts", watermark="2 seconds")
            query = mill.sql(
                "SELECT window_end, k, COUNT(*) AS n, MIN(ts) AS first FROM s [RANGE 10 SECONDS] GROUP BY k"
            )
            counts = query.to_df()
            assert dict(counts.dtypes) == {
                "window_end": "timestamp",
                "k": "bigint",
                "n": "bigint",
                "first": "timestamp",
            }
            summed = counts.withWatermark("first", "10 seconds").groupBy(F.window("first", "20 seconds"))
            made = summed.agg(F.sum("n").alias("n"), F.unix_micros(F.min("first")).alias("first"))
            found = collected.run(made.select(F.unix_micros("window.start"), "n", "first"))
        closed = [at * 1_000_000 for at in ((0,), (0, 20, 40))[start]]
        assert found == Counter({(at, 20, at): 1 for at in closed})
        folder.add(*rows[2])


def test_partitions(spark: SparkSession, tmp_path: Path) -> None:
    """Four thousand rows in four partitions: none makes another one late."""
    folder = Folder(tmp_path / "in", k="k", ts="ts")
    folder.add(*((n % 7, n) for n in range(4000)))
    with ms.connect(spark, shards=2) as mill:
        mill.stream("s", folder.frame(spark).repartition(4), order_by="ts")
        query = mill.sql("SELECT k, ts FROM s").start()
        mill.sql("CREATE QUERY late AS SELECT ts FROM s__late")
        assert _accepted(mill, 4000) == {"accepted": 4000, "late": 0, "bad": 0}
        folder.add((0, 5000), (1, 3998), (2, 4500), (3, None), (4, 4000), (5, 6000), (6, 5500), (7, 3999))
        assert _accepted(mill, 4006) == {"accepted": 4006, "late": 1, "bad": 1}
        assert query.take().height == 4006
        assert mill.query("late").take().rows() == [(3998,)]
        (stream,) = query.progress().streams
        assert (stream.accepted, stream.late, stream.bad) == (4006, 1, 1)


def _accepted(mill: ms.Connection, rows: int) -> dict[str, int]:
    deadline = time.monotonic() + 60
    while (counts := mill.mill.counts("s"))["accepted"] < rows and time.monotonic() < deadline:
        mill.check()
        time.sleep(0.1)
    return counts


def test_a_join_of_dataframes_and_a_file(spark: SparkSession, tmp_path: Path) -> None:
    a, b = Folder(tmp_path / "a", k="k", v="v"), Folder(tmp_path / "b", k="k", v="v")
    a.add(*((k, 10 * k) for k in range(6)))
    b.add(*((k, 100 * k) for k in range(3)))
    b.add(*((k, 100 * k) for k in range(3, 6)))
    (tmp_path / "c").mkdir()
    pl.DataFrame({"k": range(1, 5), "v": [-1, -2, -3, -4]}).write_parquet(tmp_path / "c" / "0.parquet")
    with ms.connect(spark, shards=2) as mill:
        mill.stream("a", a.frame(spark))
        mill.stream("b", b.frame(spark))
        mill.sql(f"CREATE STREAM c (k BIGINT, v BIGINT) WITH (connector = 'parquet', path = '{tmp_path / 'c'}')")
        joined = mill.sql("SELECT a.k, a.v AS x, b.v AS y, c.v AS z FROM a JOIN b ON a.k = b.k JOIN c ON a.k = c.k")
        found = Collected(tmp_path / "spark").run(joined.to_df().where("k < 4"))
        assert found == Counter({(k, 10 * k, 100 * k, -k): 1 for k in range(1, 4)})
        mill.sql("CREATE STREAM lost (k BIGINT) WITH (connector = 'dataframe')")
        with pytest.raises(MillstreamError, match=r"M2102: the DataFrame of stream 'lost' is missing"):
            mill.sql("SELECT k FROM lost").to_df()
        with pytest.raises(MillstreamError, match=r"M2100: 'fixed' is not a streaming DataFrame"):
            mill.stream("fixed", spark.range(3))


def test_arrays_are_arrays_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    folder = Folder(tmp_path / "in", k="k", Ts="timestamp_micros(Ts)")
    folder.add(*((n % 2, n * 1_000_000) for n in (3, 1, 2, 4)), (0, 60_000_000))
    with ms.connect(spark, shards=2) as mill:
        mill.stream("s", folder.frame(spark), order_by="ts", watermark="10 seconds")
        query = "SELECT k, ARRAY_AGG(ts) AS times, STRING_AGG(k, '-') AS text FROM s [RANGE 10 SECONDS] GROUP BY k"
        made = mill.sql(query).to_df()
        assert dict(made.dtypes)["times"] == "array<timestamp>"
        found = Collected(tmp_path / "spark").run(
            made.select("k", F.expr("transform(times, t -> second(t))[0]"), "text")
        )
    assert found == Counter({(0, 2, "0-0"): 1, (1, 1, "1-1"): 1})


def test_a_dataframe_of_a_query_is_a_stream_again(spark: SparkSession, tmp_path: Path) -> None:
    """A rate, a query, a DataFrame, a stream, a query with another stream that has no rows, a DataFrame."""
    rate = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
    silent = Folder(tmp_path / "silent", value="value").frame(spark)
    with ms.connect(spark, shards=2) as mill:
        mill.stream("ticks", rate, order_by="timestamp", watermark="1 second")
        even = mill.sql("SELECT value, timestamp, timestamp - timestamp AS none FROM ticks WHERE value % 2 = 0").to_df()
        for name in ("even", "silent"):
            mill.sql(f"CREATE STREAM {name} (value BIGINT) ORDER BY current_time WITH (connector = 'dataframe')")
        mill.stream("even", even)
        mill.stream("silent", silent)
        both = mill.sql("SELECT value FROM even UNION ALL SELECT value FROM silent").to_df()
        found = Collected(tmp_path / "spark").run(both, least=20)
    values = sorted(value for (value,) in found)
    assert found.total() >= 20 and values == [2 * n for n in range(len(values))]


def test_a_job_waits_for_its_dataframes(spark: SparkSession, tmp_path: Path) -> None:
    """Also one whose queries were all dropped: its checkpoint has the DataFrame, and nothing is to be read."""
    folder = Folder(tmp_path / "in", k="k")
    folder.add((1,), (2,))
    with ms.connect(spark, checkpoint=tmp_path / "checkpoint", shards=2) as mill:
        mill.stream("s", folder.frame(spark))
        mill.sql("CREATE QUERY q AS SELECT k FROM s")
        assert _accepted(mill, 2)["accepted"] == 2
    folder.add((3,))
    with ms.connect(spark, checkpoint=tmp_path / "checkpoint", shards=2) as mill:
        assert not any(job.running for job in mill.mill.jobs.all())
        with pytest.raises(MillstreamError, match=r"M2103: the DataFrame of stream 's' has no column 'k'"):
            mill.stream("s", folder.frame(spark).selectExpr("k AS l"))
        mill.stream("s", folder.frame(spark))
        assert _accepted(mill, 3)["accepted"] == 3
        mill.sql("DROP QUERY q")
    with ms.connect(spark, checkpoint=tmp_path / "checkpoint", shards=2) as mill:
        mill.sql("CREATE STREAM t (k BIGINT)")
        query = mill.sql("SELECT k FROM t").start()
        mill.insert("t", [(1,)])
        assert query.take().rows() == [(1,)]
        mill.check()


def test_early_rows(spark: SparkSession, tmp_path: Path) -> None:
    """By EMIT EARLY, and by a prod of the query between two runs; 'upsert' has the last row of each batch."""
    folder = Folder(tmp_path / "in", ts="ts", k="k")
    folder.add(*((n, n % 2) for n in range(15)))
    early = {(10, k, n, "early", 1) for k, n in ((0, 3), (1, 2))}
    final = {(10, k, 5, "final", 2) for k in range(2)}
    asked = {(20, k, n, "early", 1) for k, n in ((0, 3), (1, 2))}
    collected = Collected(tmp_path / "spark")
    with ms.connect(spark, shards=2) as mill:
        mill.stream("s", folder.frame(spark), order_by="ts")
        query = mill.sql(
            "SELECT window_end, k, COUNT(*) AS n, finality, revision FROM s [RANGE 10] GROUP BY k EMIT EARLY AT 50 %"
        )
        assert set(collected.run(query.to_df(mode="all"))) == early | final
        query.prod()
        assert set(collected.run(query.to_df(mode="all"))) == early | final | asked
        # One that begins later has the prod before its first row.
        assert set(Collected(tmp_path / "upserted").run(query.to_df(mode="upsert"))) == final
        mill.sql("CREATE STREAM p (k BIGINT)")
        with pytest.raises(MillstreamError, match=r"M2130.*PRODDED BY p has no early rows in a DataFrame"):
            mill.sql("SELECT k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k EMIT EARLY PRODDED BY p").to_df(mode="all")
