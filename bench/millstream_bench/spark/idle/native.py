"""Idle-waiting with Spark's own operators: a watermark on each stream; Spark follows the slower one."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from millstream_bench.spark.idle.feed import COLUMNS, QUERIES, REACH, WINDOW, Arrivals, Feed, case
from millstream_bench.spark.settings import DEFAULT_STORE, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MODE = "Spark's watermark"


def counted(spark: SparkSession, folder: Path, query: str) -> DataFrame:
    from pyspark.sql import functions as F

    a, b = (
        spark.readStream.schema(COLUMNS).parquet(str(folder / stream)).withWatermark("ts", "0 seconds")
        for stream in ("a", "b")
    )
    if query == "union":
        rows = a.union(b)
    else:
        older = b.select(F.col("k").alias("other_k"), F.col("ts").alias("other_ts"))
        within = F.expr(f"ts BETWEEN other_ts AND other_ts + INTERVAL {REACH} MICROSECONDS")
        rows = a.join(older, (F.col("k") == F.col("other_k")) & within)
    groups = rows.groupBy(F.window("ts", f"{WINDOW} microseconds"))
    counts = groups.agg(F.count(F.lit(1)).alias("n"), F.max("ts").alias("newest"))
    return counts.select("n", F.unix_micros("newest").alias("newest"))


def main(settle: str, seconds: str, result: str) -> None:
    spark, made = session(2, DEFAULT_STORE), []
    for query in QUERIES:
        arrivals = Arrivals()

        def hand_over(batch: DataFrame, _: int, arrivals: Arrivals = arrivals) -> None:
            arrivals.note([row["newest"] for row in batch.collect()])

        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name, Feed(Path(name) / "in") as feed:
            writer = counted(spark, feed.folder, query).writeStream.foreachBatch(hand_over).outputMode("append")
            running = writer.option("checkpointLocation", f"{name}/checkpoint").start()
            made.append(case(query, MODE, arrivals, float(settle), float(seconds)))
            failure = running.exception()
            running.stop()
            if failure is not None:
                raise failure
    spark.stop()
    Path(result).write_text(json.dumps(made))


if __name__ == "__main__":
    main(*sys.argv[1:])
