"""On Spark, feedback crosses stages, reaches the tasks that read files, and survives a restart."""

import time
from pathlib import Path
from typing import Any

import polars as pl
from pyspark.sql import SparkSession

import millstream as ms
from millstream.config import Options
from millstream.control.mill import LocalMill

STREAM = """CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts
            WITH (connector = 'parquet', path = '{}', max_files_per_trigger = 1)"""
PAIRS = "SELECT a.v AS w, b.v AS x, a.k, b.ts FROM s a [RANGE 2], s b [RANGE 2] WHERE a.k = b.k"
QUERIES = {
    "sums": "SELECT window_end, k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 100] GROUP BY k",
    "stages": f"SELECT window_end, w, COUNT(*) AS n FROM ({PAIRS}) AS p [RANGE 100] GROUP BY w",
}
FEEDBACK = {"sums": "~[k <= 3]", "stages": "~[w = 2]"}


def write(folder: Path, number: int) -> None:
    """A file of 1000 rows; the key changes every 200 rows, and every 50th row is late."""
    at = pl.int_range(number * 1000, number * 1000 + 1000, eager=True)
    late = pl.when(at % 50 == 49).then(at - 40).otherwise(at).alias("ts")
    frame = pl.DataFrame({"k": at // 200 % 5, "v": at % 3}).with_columns(late)
    frame.write_parquet(folder / f"_{number}", row_group_size=100)
    (folder / f"_{number}").rename(folder / f"{number}.parquet")


def test_parquet_two_stages_restart(spark: SparkSession, tmp_path: Path) -> None:
    (data := tmp_path / "data").mkdir()
    silent = LocalMill(Options.read(shards=2, contracts="off"))
    silent.execute(STREAM.format(data))
    for name, text in QUERIES.items():
        silent.add_query(name, text)
    write(data, 0)
    found: dict[str, list[tuple[Any, ...]]] = {name: [] for name in QUERIES}
    with ms.connect(spark, checkpoint=tmp_path / "kept", shards=2, contracts="off") as mill:
        mill.sql(STREAM.format(data))
        with mill.together():
            for name, text in QUERIES.items():
                mill.sql(f"CREATE QUERY {name} AS {text}")
        mill.mill.drain()
        for name in QUERIES:
            mill.query(name).feedback(FEEDBACK[name])
        write(data, 1)
        mill.mill.drain()
        for name, rows in found.items():
            rows += mill.query(name).take().rows()
    with ms.connect(spark, checkpoint=tmp_path / "kept", shards=2) as mill:
        for number in (2, 3):
            write(data, number)
            mill.mill.drain()
        for name, rows in found.items():
            rows += mill.query(name).take().rows()
        counts, progress = mill.mill.counts("s"), mill.query("sums").progress()
    silent.drain()
    assert counts == silent.counts("s") and counts["late"] == 80
    for name, rows in found.items():
        everything = silent.take_rows(name).rows()
        assert not set(rows) - set(everything)
        missing = set(everything) - set(rows)
        assert missing and all(row[1] in ((0, 1, 2, 3) if name != "stages" else (2,)) for row in missing)
    (stream,) = progress.streams
    assert stream.unwanted == ("[k <= 3]",) and stream.skipped.rows >= 1600 and stream.skipped.groups >= 10


def test_feedback_in_one_batch_with_rows_of_the_first_stage(spark: SparkSession, tmp_path: Path) -> None:
    (data := tmp_path / "data").mkdir()
    for number in (0, 1):
        write(data, number)
    with ms.connect(spark, shards=2, contracts="off", exploit="off", propagate="off") as mill:
        mill.sql(STREAM.format(data))
        with mill.together():  # the first batch has the query, the feedback and a file
            told, plain = (mill.sql(f"CREATE QUERY {name} AS {QUERIES['stages']}") for name in ("told", "plain"))
            told.feedback(FEEDBACK["stages"])
        mill.mill.drain()
        rows, everything = told.take().rows(), plain.take().rows()
    assert sorted(rows) == sorted(row for row in everything if row[1] != 2) and len(rows) < len(everything)


def test_rows_of_a_dataframe_are_dropped_when_they_are_packed(spark: SparkSession, tmp_path: Path) -> None:
    (data := tmp_path / "data").mkdir()
    write(data, 0)
    reader = spark.readStream.schema("k bigint, v bigint, ts bigint").option("maxFilesPerTrigger", 1)
    with ms.connect(spark, shards=2, contracts="off") as mill:
        mill.stream("s", reader.parquet(str(data)), order_by="ts")
        query = mill.sql(f"CREATE QUERY q AS {QUERIES['sums']}")
        plain = mill.sql("CREATE QUERY plain AS SELECT k, v FROM s WHERE k >= 0")
        deadline = time.monotonic() + 60
        while sum(mill.mill.counts("s").values()) < 1000 and time.monotonic() < deadline:
            time.sleep(0.2)
        first = plain.take().height
        query.feedback("~[k <= 3]")
        plain.feedback("~[k < 3]")
        while not query.progress().streams[0].unwanted and time.monotonic() < deadline:
            time.sleep(0.1)  # a batch that began before feedback came may read a file that was written after it
        for number in (1, 2):
            write(data, number)
        while sum(mill.mill.counts("s").values()) < 3000 and time.monotonic() < deadline:
            time.sleep(0.2)
        found = plain.take()
        (stream,) = query.progress().streams
        assert mill.mill.counts("s") == {"accepted": 2940, "late": 60, "bad": 0}
        assert first == 980 and found.height == 2 * 2 * 196 and min(found["k"]) == 3
        assert stream.unwanted == ("[k < 3]",) and stream.skipped.rows in (600, 1200)
